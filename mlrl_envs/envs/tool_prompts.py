"""What agents with tools read: their part in the question, and from turn 2 on all results so far.

Results stand in tags that only the environment writes: where an agent's own text holds them, they
are taken apart before anybody reads it.
"""

import json
from collections.abc import Sequence

from mlrl_envs.config import FamilyConfig
from mlrl_envs.envs.history import MAX_QUOTED_CHARS
from mlrl_envs.feedback import get_feedback
from mlrl_envs.parsing.text import shorten
from mlrl_envs.rewards.tools.score import made_calls
from mlrl_envs.tasks import ToolTask
from mlrl_envs.tools.toolbox import describe_tools
from mlrl_envs.types import AgentID, Turn

__all__ = ["first_prompt", "with_results"]

MAX_SHOWN_PARAMETERS = 300

_FIRST = """You are {agent}, one of {count} agents who answer a question together: {names}. All \
act at the same time, for at most {max_turns} turns.

Question: {question}

Only you know this: {brief}

It takes these tools: {required}. All tools, for every agent:
{tools}

The files are the team's: what you write to a file, your teammate can read. Results come before \
your next turn. Call tools like this, at most {max_calls} times a turn:
<tool_call>{{"name": "search", "parameters": {{"query": "harbour register"}}}}</tool_call>

{part}"""
_SOLVER_PART = """Your part: work out the answer. The answer that counts is yours; give the number \
or the name and nothing else, once you know it:
<answer>42</answer>"""
_OTHER_PART = """Your part: find what solver lacks and pass it on, in a file. Only solver can give \
the answer."""
_GO_ON = "Revise your answer. Call more tools, or answer in the same format as before."
_OVER = "The episode is over."


def first_prompt(
    task: ToolTask, agent: AgentID, agents: Sequence[AgentID], max_turns: int, max_calls: int
) -> str:
    """Return what an agent reads before turn 1.

    Args:
        task: The task.
        agent: Who reads.
        agents: The team; the last one answers.
        max_turns: Joint actions an episode may have.
        max_calls: Calls that an agent may make in a turn.
    """
    return _FIRST.format(
        agent=agent,
        count=len(agents),
        names=" and ".join(agents),
        max_turns=max_turns,
        question=task.question,
        brief=dict(task.briefs)[agent],
        required=", ".join(task.required_tools),
        tools=describe_tools(),
        max_calls=max_calls,
        part=_SOLVER_PART if agent == agents[-1] else _OTHER_PART,
    )


def with_results(
    first: str, config: FamilyConfig, task: ToolTask, turns: Sequence[Turn], agent: AgentID
) -> str:
    """Return what an agent reads: the first observation, and what came of every turn.

    Args:
        first: The observation before turn 1.
        config: Options of the family; its feedback mode and communication are used.
        task: The task.
        turns: The turns played so far.
        agent: Who reads.
    """
    if not turns:
        return first
    parts = [first]
    for number, turn in enumerate(turns, start=1):
        parts.append(f"You wrote in turn {number}:\n{_quote(turn.actions[agent])}")
        parts += _results(turn, agent, "Results of your calls")
        if config.communication == "broadcast":
            for other in turn.actions:
                if other != agent:
                    parts.append(f"Your teammate {other} wrote:\n{_quote(turn.actions[other])}")
                    parts += _results(turn, other, f"Results of the calls of {other}")
    feedback = get_feedback(config.feedback)(task, turns, agent)
    if feedback:
        parts.append(f"Feedback on the last turn:\n{feedback}")
    over = turns[-1].score.solved or len(turns) >= config.max_turns
    parts.append(_OVER if over else _GO_ON)
    return "\n\n".join(parts)


def _results(turn: Turn, agent: AgentID, title: str) -> list[str]:
    lines = []
    for made in made_calls(turn):
        if made.agent != agent:
            continue
        call = f"{made.call.name or 'call'}({_shown(made.call.parameters)})"
        status = "" if made.result.status == "ok" else f"{made.result.status}: "
        text = _disarm(f"{call}\n{status}{made.result.text}")
        lines.append(f"<tool_result>{text}</tool_result>")
    return ["\n".join([f"{title}:", *lines])] if lines else []


def _shown(parameters: object) -> str:
    return shorten(json.dumps(parameters, ensure_ascii=False)[1:-1], MAX_SHOWN_PARAMETERS)


def _quote(text: str) -> str:
    return _disarm(shorten(text.strip(), MAX_QUOTED_CHARS)) or "(nothing)"


def _disarm(text: str) -> str:
    return text.replace("<tool_result", "<forged_result").replace(
        "</tool_result", "</forged_result"
    )

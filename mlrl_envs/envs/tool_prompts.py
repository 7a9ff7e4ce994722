"""Prompts of agents with tools, and paragraphs with the results of their calls.

Results stand in tags that only the environment writes. In the text of agents these tags are
replaced before the text is quoted, so that agents cannot forge results.
"""

import json
from collections.abc import Sequence

from mlrl_envs.envs.history import quote
from mlrl_envs.parsing.text import shorten
from mlrl_envs.rewards.tools.score import made_calls
from mlrl_envs.tasks import ToolTask
from mlrl_envs.tools.toolbox import describe_tools
from mlrl_envs.types import AgentID, Turn

__all__ = ["GO_ON", "calls_and_results", "first_prompt"]

MAX_SHOWN_PARAMETERS = 300

_FIRST = """You are {agent}, one of {count} agents who answer a question together: {names}. All \
act at the same time, for at most {max_turns} turns.

Question: {question}

Only you know this: {brief}

These tools are enough: {required}. {tools}

The files are the team's: what you write to a file, your teammate can read. Results come before \
your next turn. {calls}

{part}"""
_TOOLS = """All tools, for every agent:
{tools}"""
_CALLS = """Call tools like this, at most {max_calls} times a turn:
<tool_call>{{"name": "search", "parameters": {{"query": "lost lanterns"}}}}</tool_call>"""
_TOOLS_OF_TEMPLATE = "Every agent has all tools."
_CALLS_OF_TEMPLATE = "Call tools at most {max_calls} times a turn."
_SOLVER_PART = """Your part: work out the answer. The answer that counts is yours; give the number \
or the name and nothing else, once you know it:
<answer>42</answer>"""
_OTHER_PART = """Your part: find what solver lacks and pass it on, in a file. Only solver can give \
the answer."""
GO_ON = "Revise your answer. Call more tools, or answer in the same format as before."


def first_prompt(
    task: ToolTask,
    agent: AgentID,
    agents: Sequence[AgentID],
    *,
    max_turns: int,
    max_calls: int,
    describes_tools: bool = True,
) -> str:
    """Return the observation before turn 1.

    Args:
        task: The task.
        agent: The agent that reads the observation.
        agents: All agents; the last one answers.
        max_turns: Maximum number of joint actions in an episode.
        max_calls: Maximum number of calls of an agent in a turn.
        describes_tools: Whether the text lists the tools and shows the format of a call.
    """
    tools = _TOOLS.format(tools=describe_tools()) if describes_tools else _TOOLS_OF_TEMPLATE
    calls = _CALLS if describes_tools else _CALLS_OF_TEMPLATE
    return _FIRST.format(
        agent=agent,
        count=len(agents),
        names=" and ".join(agents),
        max_turns=max_turns,
        question=task.question,
        brief=dict(task.briefs)[agent],
        required=", ".join(task.required_tools),
        tools=tools,
        calls=calls.format(max_calls=max_calls),
        part=_SOLVER_PART if agent == agents[-1] else _OTHER_PART,
    )


def calls_and_results(turns: Sequence[Turn], agent: AgentID, *, with_teammates: bool) -> list[str]:
    """Return paragraphs with the messages and the results of calls, turn by turn.

    Args:
        turns: The turns played so far.
        agent: The agent that reads the observation.
        with_teammates: Whether messages and results of teammates are quoted, too.
    """
    paragraphs = []
    for number, turn in enumerate(turns, start=1):
        paragraphs.append(f"You wrote in turn {number}:\n{_quote(turn.actions[agent])}")
        paragraphs += _results(turn, agent, "Results of your calls")
        for other in turn.actions:
            if with_teammates and other != agent:
                paragraphs.append(f"Your teammate {other} wrote:\n{_quote(turn.actions[other])}")
                paragraphs += _results(turn, other, f"Results of the calls of {other}")
    return paragraphs


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
    return _disarm(quote(text))


def _disarm(text: str) -> str:
    return text.replace("<tool_result", "<forged_result").replace(
        "</tool_result", "</forged_result"
    )

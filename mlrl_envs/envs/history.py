"""Observations from turn 2 on: the task again, one's own answer, the feedback, the request."""

from collections.abc import Sequence

from mlrl_envs.config import FamilyConfig
from mlrl_envs.feedback import get_feedback
from mlrl_envs.parsing.text import shorten
from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["MAX_QUOTED_CHARS", "with_history"]

MAX_QUOTED_CHARS = 4000

_REVISE = "Revise your answer. Reply in the same format as before, with the whole answer."
_OVER = "The episode is over."


def with_history(
    first: str, config: FamilyConfig, task: Task, turns: Sequence[Turn], agent: AgentID
) -> str:
    """Return what an agent reads: the first observation, and what came of its last answer.

    Args:
        first: The observation before turn 1.
        config: Options of the family; its feedback mode and communication are used.
        task: The task.
        turns: The turns played so far.
        agent: Who reads.
    """
    if not turns:
        return first
    last = turns[-1]
    parts = [first, f"You answered in turn {len(turns)}:\n{_quote(last.actions[agent])}"]
    if config.communication == "broadcast":
        parts += [
            f"Your teammate {other} answered:\n{_quote(action)}"
            for other, action in last.actions.items()
            if other != agent
        ]
    feedback = get_feedback(config.feedback)(task, turns, agent)
    if feedback:
        parts.append(f"Feedback on the joint answer:\n{feedback}")
    parts.append(_OVER if last.score.solved or len(turns) >= config.max_turns else _REVISE)
    return "\n\n".join(parts)


def _quote(text: str) -> str:
    return shorten(text.strip(), MAX_QUOTED_CHARS) or "(nothing)"

"""`passed`: one bit, whether every level was passed."""

from collections.abc import Sequence

from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  one interface
    """Return whether the joint answer was right."""
    if not turns:
        return ""
    if turns[-1].score.solved:
        return "All levels passed."
    return "Not all levels passed."

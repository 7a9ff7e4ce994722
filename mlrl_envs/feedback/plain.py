"""`plain`: nothing but the request to revise, which every later observation ends with."""

from collections.abc import Sequence

from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  one interface
    """Return nothing."""
    return ""

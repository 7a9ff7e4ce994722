"""Feedback mode `plain`: no feedback; observations still end with the request to revise."""

from collections.abc import Sequence

from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  common signature of feedback modes
    """Return an empty string."""
    return ""

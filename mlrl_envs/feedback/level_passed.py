"""Feedback mode `level_passed`: the status of each check, without details."""

from collections.abc import Sequence

from mlrl_envs.feedback.last_checks import last_checks
from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  common signature of feedback modes
    """Return the status of each check, one check per line."""
    checks = last_checks(turns, agent)
    return "\n".join([f"- {check['name']}: {check['status']}" for check in checks])

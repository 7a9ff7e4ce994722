"""`level_passed`: a line a level with its finding, without the reasons."""

from collections.abc import Sequence

from mlrl_envs.feedback.checks import last_checks
from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  one interface
    """Return the finding of each check."""
    checks = last_checks(turns, agent)
    return "\n".join([f"- {check['name']}: {check['status']}" for check in checks])

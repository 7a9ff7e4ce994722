"""`diagnostics`: each level's finding and, where it failed or needs a remark, the reasons."""

from collections.abc import Sequence

from mlrl_envs.feedback.checks import last_checks
from mlrl_envs.types import AgentID, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  one interface
    """Return the finding of each check with its details."""
    lines: list[str] = []
    for check in last_checks(turns, agent):
        lines.append(f"- {check.name}: {check.status}")
        lines += [f"  {line}" for detail in check.details for line in detail.split("\n")]
    return "\n".join(lines)

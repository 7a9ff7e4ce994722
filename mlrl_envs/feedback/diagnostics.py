"""Feedback mode `diagnostics`: the status of each check, with its details."""

from collections.abc import Sequence
from typing import cast

from mlrl_envs.feedback.last_checks import last_checks
from mlrl_envs.types import AgentID, Json, Task, Turn

__all__ = ["feedback"]


def feedback(task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG001  common signature of feedback modes
    """Return the status and the details of each check, one check per line."""
    lines: list[str] = []
    for check in last_checks(turns, agent):
        lines.append(f"- {check['name']}: {check['status']}")
        details = cast("Sequence[Json]", check.get("details", ()))
        lines += ["  " + str(detail).replace("\n", "\n  ") for detail in details]
    return "\n".join(lines)

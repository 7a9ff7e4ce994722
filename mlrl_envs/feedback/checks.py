"""Reading the checks of the last turn, for the modes that show them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from mlrl_envs.types import AgentID, Json, Turn

__all__ = ["Check", "last_checks"]


class Check(NamedTuple):
    """One public fact about an answer.

    Attributes:
        name: What was looked at.
        passed: Whether it is as it should be.
        status: The finding in a word or two.
        details: Whole lines that say why, and what to mend.
    """

    name: str
    passed: bool
    status: str
    details: tuple[str, ...] = ()


def last_checks(turns: Sequence[Turn], agent: AgentID) -> list[Check]:
    """Return the checks of the last turn; none before the first."""
    if not turns:
        return []
    diagnostics = turns[-1].score.diagnostics.get(agent, {})
    checks = cast("Sequence[Mapping[str, Json]]", diagnostics.get("checks", ()))
    return [
        Check(
            str(check["name"]),
            bool(check["passed"]),
            str(check["status"]),
            tuple(map(str, cast("Sequence[str]", check.get("details", ())))),
        )
        for check in checks
    ]

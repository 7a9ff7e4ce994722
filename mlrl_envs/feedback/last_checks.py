"""Access to the checks in the diagnostics of the last turn."""

from collections.abc import Mapping, Sequence
from typing import cast

from mlrl_envs.types import AgentID, Json, Turn

__all__ = ["last_checks"]


def last_checks(turns: Sequence[Turn], agent: AgentID) -> Sequence[Mapping[str, Json]]:
    """Return the agent's checks of the last turn; empty before the first turn.

    A check has the keys `name`, `passed`, `status` (the result in one or two words) and `details`
    (lines that explain a failure or suggest a fix).
    """
    if not turns:
        return ()
    diagnostics = turns[-1].score.diagnostics.get(agent, {})
    return cast("Sequence[Mapping[str, Json]]", diagnostics.get("checks", ()))

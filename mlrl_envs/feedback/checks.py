"""Reading the checks of the last turn, for the modes that show them."""

from collections.abc import Mapping, Sequence
from typing import cast

from mlrl_envs.types import AgentID, Json, Turn

__all__ = ["last_checks"]


def last_checks(turns: Sequence[Turn], agent: AgentID) -> Sequence[Mapping[str, Json]]:
    """Return the checks of the last turn; none before the first.

    Each says its `name` and whether it has `passed`, the finding in a word or two (`status`) and,
    as `details`, whole lines that say why, and what to mend.
    """
    if not turns:
        return ()
    diagnostics = turns[-1].score.diagnostics.get(agent, {})
    return cast("Sequence[Mapping[str, Json]]", diagnostics.get("checks", ()))

"""What grounded rewards of many turns share: a turn earns only its gain over earlier turns.

With q_t the quality of turn t, a turn pays max(0, q_t - max(q_1 .. q_{t-1})). The sum over an
episode is its best quality, so that solving at turn 1 is worth at least as much as any later
path, and repeating or worsening an answer earns nothing.
"""

import math
from collections.abc import Mapping, Sequence

from mlrl_envs.types import AgentID, Turn

__all__ = ["ALREADY_EARNED", "best_quality", "pay_gain"]

ALREADY_EARNED = "already_earned"


def best_quality(turns: Sequence[Turn], agent: AgentID) -> float:
    """Return the best quality among the turns, 0 where there are none."""
    return max((_quality(turn.score.components[agent]) for turn in turns), default=0.0)


def pay_gain(parts: Mapping[str, float], turns: Sequence[Turn], agent: AgentID) -> dict[str, float]:
    """Return the parts and, where an earlier turn has earned before, what that takes away."""
    best = best_quality(turns, agent)
    if best == 0.0:
        return dict(parts)
    quality = math.fsum(parts.values())
    return {**parts, ALREADY_EARNED: -min(best, quality)}


def _quality(components: Mapping[str, float]) -> float:
    return math.fsum(value for name, value in components.items() if name != ALREADY_EARNED)

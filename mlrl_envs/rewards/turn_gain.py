"""Gain over earlier turns, which grounded rewards of several turns pay.

With q_t the quality of turn t, a turn pays max(0, q_t - max(q_1 .. q_{t-1})). The sum over an
episode is its best quality: solving the task at turn 1 is worth at least as much as any later
success, and repeating or worsening an answer pays nothing.
"""

import math
from collections.abc import Mapping, Sequence

from mlrl_envs.types import AgentID, Turn

__all__ = ["ALREADY_EARNED", "best_quality", "pay_gain"]

ALREADY_EARNED = "already_earned"


def best_quality(turns: Sequence[Turn], agent: AgentID) -> float:
    """Return the best quality of the agent among the turns; 0 without turns."""
    return max((_quality(turn.score.components[agent]) for turn in turns), default=0.0)


def pay_gain(parts: Mapping[str, float], turns: Sequence[Turn], agent: AgentID) -> dict[str, float]:
    """Return the parts and, if an earlier turn earned a reward, a deduction for it."""
    best = best_quality(turns, agent)
    if best == 0.0:
        return dict(parts)
    quality = math.fsum(parts.values())
    return {**parts, ALREADY_EARNED: -min(best, quality)}


def _quality(components: Mapping[str, float]) -> float:
    return math.fsum(value for name, value in components.items() if name != ALREADY_EARNED)

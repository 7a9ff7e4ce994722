"""Group-relative advantages, without torch.

Sources: MAGRPO (arXiv 2508.04652), GRPO (arXiv 2402.03300), RLOO (arXiv 2402.14740).
"""

import math
from collections.abc import Sequence
from typing import Literal

from mlrl_learners.errors import NumericsError

__all__ = ["Baseline", "group_advantages", "normalize", "pooled_deviation"]

Baseline = Literal["mean", "none", "leave_one_out", "max", "role_ema"]


def group_advantages(
    returns: Sequence[float],
    baseline: Baseline = "mean",
    *,
    normalize_std: bool = False,
    deviation: float | None = None,
    epsilon: float = 1e-4,
    role_baseline: float = 0.0,
) -> list[float]:
    """Return the advantage of each answer: its return minus the baseline of its group.

    With R the returns of the G answers to one prompt, the advantages are:

    - `mean`: R - mean(R)
    - `none`: R
    - `leave_one_out`: R - mean of the others = (G * R - sum(R)) / (G - 1); 0 when G = 1
    - `max`: R - max(R), which is biased: the maximum depends on the answer itself
    - `role_ema`: R - `role_baseline`

    Args:
        returns: Return of each answer, at least one.
        baseline: Kind of baseline.
        normalize_std: Divide by `deviation` plus `epsilon`, as in GRPO. Not for `none` and
            `role_ema`: equal returns have advantages other than 0, and would be divided by
            `epsilon` alone.
        deviation: By default the population standard deviation of the returns.
        epsilon: Constant added to the standard deviation, above 0.
        role_baseline: Average return of the agent, see `mlrl_learners.functional.role_baseline`.

    Raises:
        NumericsError: If a return is not finite.
    """
    _check_finite(returns, "return")
    size = len(returns)
    total = math.fsum(returns)
    if baseline == "none":
        advantages = list(returns)
    elif baseline == "role_ema":
        advantages = [value - role_baseline for value in returns]
    elif baseline == "max":
        advantages = [value - max(returns) for value in returns]
    elif min(returns) == max(returns):
        advantages = [0.0] * size  # exactly 0: rounding errors must not become a gradient
    elif baseline == "mean":
        advantages = [value - total / size for value in returns]
    else:
        advantages = [(size * value - total) / (size - 1) for value in returns]
    if not normalize_std:
        return advantages
    std = pooled_deviation([returns], [1.0]) if deviation is None else deviation
    return [advantage / (std + epsilon) for advantage in advantages]


def pooled_deviation(groups: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """Return the square root of the weighted mean of the groups' population variances.

    GRPO divides by the deviation of the answers to one task. With several turns, a deviation per
    node would give a turn with small rewards the same gradient as one with large rewards; one
    deviation for all nodes of a rollout keeps their ratio.

    Args:
        groups: Returns of the answers of each group, at least one group and one answer.
        weights: Weight of each group, above 0.
    """
    variances = []
    for returns in groups:
        mean = math.fsum(returns) / len(returns)
        variances.append(math.fsum((value - mean) ** 2 for value in returns) / len(returns))
    return math.sqrt(_weighted_sum(variances, weights) / math.fsum(weights))


def normalize(
    values: Sequence[float], weights: Sequence[float] | None = None, *, epsilon: float = 1e-8
) -> list[float]:
    """Return (value - mean) / (population standard deviation + epsilon); zeros if all are equal.

    Args:
        values: Values to normalise.
        weights: Weight of each value in the mean and the deviation, above 0; 1 by default.
        epsilon: Constant added to the standard deviation, above 0.

    Raises:
        NumericsError: If a value is not finite.
    """
    _check_finite(values, "value to be normalised")
    if not values or min(values) == max(values):
        return [0.0] * len(values)  # exactly 0: dividing by epsilon would amplify rounding errors
    weights = weights or [1.0] * len(values)
    total = math.fsum(weights)
    mean = _weighted_sum(values, weights) / total
    variance = _weighted_sum([(value - mean) ** 2 for value in values], weights) / total
    return [(value - mean) / (math.sqrt(variance) + epsilon) for value in values]


def _weighted_sum(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True))


def _check_finite(values: Sequence[float], what: str) -> None:
    """Refuse NaN and infinity, which comparisons would accept silently."""
    for value in values:
        if not math.isfinite(value):
            raise NumericsError(f"a {what} is {value}")

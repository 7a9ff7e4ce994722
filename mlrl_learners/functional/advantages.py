"""Group-relative advantages. Free of torch.

Sources: MAGRPO (arXiv 2508.04652), GRPO (arXiv 2402.03300), RLOO (arXiv 2402.14740).
"""

import math
from collections.abc import Sequence
from typing import Literal

from mlrl_learners.errors import NumericsError

__all__ = ["Baseline", "group_advantages", "normalize"]

Baseline = Literal["mean", "none", "leave_one_out", "max"]


def group_advantages(
    returns: Sequence[float],
    baseline: Baseline = "mean",
    *,
    normalize_std: bool = False,
    epsilon: float = 1e-4,
) -> list[float]:
    """Return how much better each answer did than the baseline of its group.

    With R the returns of the G answers to one prompt:

    - `mean`: R - mean(R)
    - `none`: R
    - `leave_one_out`: R - mean of the others = (G * R - sum(R)) / (G - 1); 0 when G = 1
    - `max`: R - max(R)

    Args:
        returns: One return an answer, at least one.
        baseline: Which baseline is subtracted.
        normalize_std: Divide by the population standard deviation of the returns plus `epsilon`.
        epsilon: Added to the standard deviation.

    Raises:
        NumericsError: If a return is not finite.
    """
    _check_finite(returns, "return")
    size = len(returns)
    total = math.fsum(returns)
    if baseline == "none":
        advantages = list(returns)
    elif baseline == "max":
        advantages = [value - max(returns) for value in returns]
    elif min(returns) == max(returns):
        advantages = [0.0] * size  # exactly: rounding must not turn equal rewards into a gradient
    elif baseline == "mean":
        advantages = [value - total / size for value in returns]
    else:
        advantages = [(size * value - total) / (size - 1) for value in returns]
    if not normalize_std:
        return advantages
    mean = total / size
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in returns) / size)
    return [advantage / (std + epsilon) for advantage in advantages]


def normalize(values: Sequence[float], *, epsilon: float = 1e-8) -> list[float]:
    """Return (value - mean) / (population standard deviation + epsilon); zeros if all are equal.

    Raises:
        NumericsError: If a value is not finite.
    """
    _check_finite(values, "value to be normalised")
    if not values or min(values) == max(values):
        return [0.0] * len(values)  # exactly: rounding must not be blown up to size one
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / (std + epsilon) for value in values]


def _check_finite(values: Sequence[float], what: str) -> None:
    """Refuse what comparisons would silently take for equal to anything."""
    for value in values:
        if not math.isfinite(value):
            raise NumericsError(f"a {what} is {value}")

"""Percentile bootstrap intervals (Efron, 1979)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVEL", "RESAMPLES", "Interval", "bootstrap_interval", "percentile_interval"]

Interval = tuple[float, float]
LEVEL = 0.95
RESAMPLES = 2000


def bootstrap_interval(
    values: Sequence[float], *, seed: int, level: float = LEVEL, resamples: int = RESAMPLES
) -> Interval:
    """Return a bootstrap interval of the mean.

    Args:
        values: One value per unit that is drawn with replacement, at least one.
        seed: Seed of the draws.
        level: Share of the resampled means inside the interval, in (0, 1).
        resamples: Number of resampled means.
    """
    return percentile_interval(
        [np.asarray(values, dtype=float)],
        lambda drawn: drawn.mean(axis=1),
        seed=seed,
        level=level,
        resamples=resamples,
    )


def percentile_interval(
    samples: Sequence[NDArray[Any]],
    statistic: Callable[..., NDArray[np.float64]],
    *,
    seed: int,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    quantile: Callable[..., NDArray[np.float64]] = np.quantile,
) -> Interval:
    """Return a bootstrap interval of a statistic of several independent samples.

    Args:
        samples: Each is resampled by itself, with replacement, in this order.
        statistic: From one array `[resamples, n]` per sample to the statistic `[resamples]`.
        seed: Seed of the draws.
        level: Share of the resampled statistics inside the interval, in (0, 1).
        resamples: Number of resampled statistics.
        quantile: From values and probabilities to the quantiles, interpolated linearly.
    """
    generator = np.random.default_rng(seed)
    drawn = [
        values[generator.integers(len(values), size=(resamples, len(values)))] for values in samples
    ]
    low, high = quantile(statistic(*drawn), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

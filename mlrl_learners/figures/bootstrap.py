"""Figures of an evaluation: means, a bootstrap interval, pass@k."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mlrl_learners.types import Episode

__all__ = ["bootstrap_interval", "component_means", "mean", "pass_at_k"]


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean, summed exactly."""
    return math.fsum(values) / len(values)


def bootstrap_interval(
    values: Sequence[float], *, seed: int, level: float = 0.95, resamples: int = 2000
) -> tuple[float, float]:
    """Return a percentile bootstrap interval of the mean.

    Args:
        values: One value a unit that is drawn with replacement, at least one.
        seed: Decides the draws.
        level: Share of the resampled means that lies inside, in (0, 1).
        resamples: How many means are drawn.
    """
    drawn = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    means = np.asarray(values, dtype=float)[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def pass_at_k(tasks: Sequence[tuple[int, int]], largest: int) -> dict[int, float]:
    """Return the unbiased pass@k for every k that some task has enough episodes for.

    A task with n episodes, c of them solved, adds 1 - C(n - c, k) / C(n, k): the chance that k
    episodes drawn without replacement hold a solved one (Chen et al. 2021, arXiv 2107.03374).

    Args:
        tasks: For each task, n and c.
        largest: Largest k.
    """
    return {
        k: mean([1 - math.comb(n - c, k) / math.comb(n, k) for n, c in tasks if n >= k])
        for k in range(1, largest + 1)
        if any(n >= k for n, _ in tasks)
    }


def component_means(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return for each part of the reward its mean over episodes and agents, summed over turns.

    The parts of a shared reward add up to the mean return over episodes.
    """
    totals: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        share = 1 / (len(episodes) * len(episode.returns))
        for turn in episode.turns:
            for parts in turn.components.values():
                for name, value in parts.items():
                    totals[name].append(value * share)
    return {name: math.fsum(values) for name, values in sorted(totals.items())}

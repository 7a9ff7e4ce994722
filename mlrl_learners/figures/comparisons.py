"""Statistics for comparing results: intervals, interquartile means, improvement, paired tests.

Resampling draws tasks, never single episodes, because episodes of one task are not independent.
Tests and trimmed means are scipy's.

Sources: Agarwal et al., 2021 (arXiv:2108.13264) for the interquartile mean over tasks and seeds and
for the probability of improvement; Fisher's sign-flip test for the paired p-value.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlrl_envs.errors import MissingPackageError
from mlrl_learners.figures.bootstrap import Interval, percentile_interval
from mlrl_learners.figures.means import mean

__all__ = [
    "check_statistics",
    "interquartile_mean",
    "iqm_interval",
    "mean_interval",
    "paired_p_value",
    "probability_interval",
    "probability_of_improvement",
]

RESAMPLES = 2000
PERMUTATIONS = 9999

Tasks = Sequence[Sequence[float]]
"""For each task, the values of its seeds."""


def check_statistics() -> None:
    """Check that what is compared here can be computed.

    Raises:
        MissingPackageError: If scipy is not installed.
    """
    _scipy_stats()


def mean_interval(groups: Sequence[Sequence[float]], *, seed: int = 0) -> Interval | None:
    """Return a 95 % bootstrap interval of the mean over groups of their means.

    None if no group has two values, because a single value has no spread.

    Args:
        groups: For each environment, one value per task; tasks are drawn within an environment.
        seed: Seed of the draws.
    """
    if max(map(len, groups)) < 2:
        return None
    samples = [np.asarray(values, float) for values in groups]

    def statistic(*drawn: NDArray[np.float64]) -> Any:  # noqa: ANN401 - an array
        return np.mean([values.mean(axis=-1) for values in drawn], axis=0)

    # A group of one value adds no spread; it is doubled, which keeps the draws of earlier results.
    doubled = [values if len(values) > 1 else np.repeat(values, 2) for values in samples]
    return _interval(doubled, statistic, seed)


def interquartile_mean(tasks: Tasks) -> float:
    """Return the mean of the middle half of all values, over tasks and seeds together.

    At either end a quarter of the values, rounded down, is left out.
    """
    values = np.concatenate([np.asarray(each, float) for each in tasks])
    return float(_scipy_stats().trim_mean(values, 0.25))


def iqm_interval(tasks: Tasks, *, seed: int = 0) -> Interval | None:
    """Return a 95 % bootstrap interval of the interquartile mean, drawing tasks.

    None for a single task.
    """
    if len(tasks) < 2:
        return None

    def statistic(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([interquartile_mean([tasks[i] for i in places]) for places in drawn])

    return _interval([np.arange(len(tasks))], statistic, seed)


def probability_of_improvement(ours: Tasks, theirs: Tasks) -> float:
    """Return the mean over tasks of the probability that a value of ours exceeds one of theirs.

    Ties count half; values are compared to 9 decimals. It is the Mann-Whitney statistic divided by
    its maximum, so that 0.5 means no difference.

    Args:
        ours: For each task, the values of its seeds.
        theirs: The same tasks in the same order; the number of seeds may differ.
    """
    return mean(_probabilities(ours, theirs))


def probability_interval(
    groups: Sequence[tuple[Tasks, Tasks]], *, seed: int = 0
) -> Interval | None:
    """Return a 95 % bootstrap interval of the mean over groups of their improvement.

    None if no group has two tasks.

    Args:
        groups: For each environment, ours and theirs; tasks are drawn within an environment.
        seed: Seed of the draws.
    """
    return mean_interval([_probabilities(ours, theirs) for ours, theirs in groups], seed=seed)


def paired_p_value(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], *, seed: int = 0
) -> float:
    """Return the two-sided p-value of a paired permutation test of the difference of means.

    The difference is the mean over groups of their mean differences, each group with equal weight.
    Under the null hypothesis the two values of a task are exchangeable. All exchanges are
    enumerated if there are at most 9999, else 9999 are drawn. Values are compared to 9 decimals.
    The result is 1 for a single task and for equal values.

    Args:
        ours: For each environment, one value per task.
        theirs: The same environments and tasks in the same order.
        seed: Seed of the draws.
    """
    weights = np.concatenate([np.full(len(each), 1 / len(each) / len(ours)) for each in ours])
    first, second = (
        np.concatenate([_rounded(each) for each in values]) for values in (ours, theirs)
    )
    if len(weights) == 1 or np.array_equal(first, second):
        return 1.0
    found = _scipy_stats().permutation_test(
        (first, second),
        lambda x, y, axis: np.sum((x - y) * weights, axis=axis),
        permutation_type="samples",
        n_resamples=PERMUTATIONS,
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _interval(
    samples: Sequence[NDArray[Any]], statistic: Callable[..., Any], seed: int
) -> Interval:
    return percentile_interval(
        samples, statistic, seed=seed, resamples=RESAMPLES, quantile=_quantile
    )


def _quantile(values: NDArray[np.float64], probabilities: Sequence[float]) -> Any:  # noqa: ANN401
    """Interpolate as `scipy.stats.quantile` does.

    `np.quantile` rounds differently in the last bit, and published intervals must be reproducible.
    """
    shares = np.asarray(probabilities)
    ranks = shares * len(values) + (1 - shares)  # counted from 1
    below = np.floor(ranks).astype(int)
    weight = ranks % 1
    ordered = np.sort(values)
    above = np.minimum(below, len(values) - 1)
    return (1 - weight) * ordered[below - 1] + weight * ordered[above]


def _probabilities(ours: Tasks, theirs: Tasks) -> list[float]:
    test = _scipy_stats().mannwhitneyu
    return [
        float(test(_rounded(x), _rounded(y), method="asymptotic").statistic) / (len(x) * len(y))
        for x, y in zip(ours, theirs, strict=True)
    ]


def _rounded(values: Sequence[float]) -> NDArray[np.float64]:
    """Return values to 9 decimals, so that returns that differ by rounding errors are ties."""
    return np.round(np.asarray(values, float), 9)


def _scipy_stats() -> Any:  # noqa: ANN401 - scipy ships no types
    try:
        from scipy import stats
    except ImportError as error:
        raise MissingPackageError(
            "benchmark statistics need the package 'scipy': pip install 'mlrl[bench]'"
        ) from error
    return stats

"""Statistics of results: intervals, interquartile means, improvement, paired tests.

What is drawn anew is always tasks, never episodes: episodes of one task are not independent, and
more samples of few tasks must not look like more evidence. Resampling and tests are scipy's.

Sources: Agarwal et al. 2021 (arXiv 2108.13264) for the interquartile mean over tasks and seeds and
for the probability of improvement; Efron 1979 for the bootstrap; Fisher's sign-flip test for pairs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlrl_envs.errors import MissingPackageError
from mlrl_learners.figures.bootstrap import mean

__all__ = [
    "interquartile_mean",
    "iqm_interval",
    "mean_interval",
    "paired_p_value",
    "probability_interval",
    "probability_of_improvement",
]

RESAMPLES = 2000
PERMUTATIONS = 9999
LEVEL = 0.95

Interval = tuple[float, float]
Tasks = Sequence[Sequence[float]]
"""For each task, the values of its seeds."""


def mean_interval(groups: Sequence[Sequence[float]], *, seed: int = 0) -> Interval | None:
    """Return a 95 % bootstrap interval of the mean over groups of their means.

    None where no group has two values: one alone says nothing of its spread.

    Args:
        groups: For each environment, one value a task; tasks are drawn inside their environment.
        seed: Decides the draws.
    """

    def statistic(*drawn: NDArray[np.float64], axis: int = -1) -> Any:  # noqa: ANN401 - an array
        return np.mean([values.mean(axis=axis) for values in drawn], axis=0)

    return _bootstrap([np.asarray(values, float) for values in groups], statistic, seed)


def interquartile_mean(tasks: Tasks) -> float:
    """Return the mean of the middle half of all values, tasks and seeds taken together.

    A quarter of the values is cut off at either end, rounded down.
    """
    values = np.concatenate([np.asarray(each, float) for each in tasks])
    return float(_scipy_stats().trim_mean(values, 0.25))


def iqm_interval(tasks: Tasks, *, seed: int = 0) -> Interval | None:
    """Return a 95 % bootstrap interval of the interquartile mean; tasks are drawn.

    None for a single task.
    """
    return _by_task(tasks, lambda drawn: interquartile_mean([tasks[i] for i in drawn]), seed)


def probability_of_improvement(ours: Tasks, theirs: Tasks) -> float:
    """Return the mean over tasks of the chance that a value of ours is above one of theirs.

    Ties count half: it is the Mann-Whitney statistic over its greatest value, so that 0.5 says
    that neither is better.

    Args:
        ours: For each task, the values of its seeds.
        theirs: The same tasks in the same order; the numbers of seeds may differ.
    """
    return mean(_chances(ours, theirs))


def probability_interval(
    groups: Sequence[tuple[Tasks, Tasks]], *, seed: int = 0
) -> Interval | None:
    """Return a 95 % bootstrap interval of the mean over groups of their improvement.

    None where no group has two tasks.

    Args:
        groups: For each environment, ours and theirs; tasks are drawn inside their environment.
        seed: Decides the draws.
    """
    return mean_interval([_chances(ours, theirs) for ours, theirs in groups], seed=seed)


def paired_p_value(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], *, seed: int = 0
) -> float:
    """Return the two-sided p-value of a paired permutation test of the difference of means.

    The difference is the mean over groups of their mean differences, each group of equal weight.

    Under the null hypothesis either name may stand over either value of a task. All exchanges are
    tried where there are few, else 9999 at random; 1 for a single task, and where nothing differs.

    Args:
        ours: For each environment, one value a task.
        theirs: The same environments and tasks in the same order.
        seed: Decides the draws.
    """
    weights = np.concatenate([np.full(len(each), 1 / len(each) / len(ours)) for each in ours])
    first, second = (
        np.concatenate([np.asarray(each, float) for each in values]) for values in (ours, theirs)
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


def _chances(ours: Tasks, theirs: Tasks) -> list[float]:
    test = _scipy_stats().mannwhitneyu
    return [
        float(test(x, y, method="asymptotic").statistic) / (len(x) * len(y))
        for x, y in zip(ours, theirs, strict=True)
    ]


def _by_task(tasks: Tasks, of: Callable[[Sequence[int]], float], seed: int) -> Interval | None:
    places = np.arange(len(tasks))
    return _bootstrap([places], lambda drawn: of([int(i) for i in drawn]), seed, vectorized=False)


def _bootstrap(
    data: Sequence[NDArray[Any]],
    statistic: Callable[..., Any],
    seed: int,
    *,
    vectorized: bool = True,
) -> Interval | None:
    """Return a percentile interval; beside others, a sample of one value adds no spread."""
    if max(map(len, data)) < 2:
        return None
    samples = tuple(values if len(values) > 1 else np.repeat(values, 2) for values in data)
    found = _scipy_stats().bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        vectorized=vectorized,
        rng=np.random.default_rng(seed),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _scipy_stats() -> Any:  # noqa: ANN401 - scipy ships no types
    try:
        from scipy import stats
    except ImportError as error:
        raise MissingPackageError(
            "benchmark statistics need the package 'scipy': pip install 'mlrl[bench]'"
        ) from error
    return stats

"""Means of several runs, such as the seeds of one configuration, with their range."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlrl_learners.figures.means import mean
from mlrl_learners.report.panels import Curves, EvaluationPoint

__all__ = ["mean_curves"]


def mean_curves(name: str, runs: Sequence[Curves], *, color: int) -> Curves:
    """Return the mean of each metric over runs by iteration, with its lowest and highest value.

    An iteration that some runs have not reached is averaged over the others.

    Args:
        name: Name of the group.
        runs: At least one.
        color: Index of its colour.
    """
    iterations = np.unique(np.concatenate([run.x("iteration") for run in runs]))
    names = {name for run in runs for name in run.columns} - {"iteration"}
    columns, bands = {"iteration": iterations}, {}
    for metric in names:
        values = np.stack([_at(run, metric, iterations) for run in runs])
        known = ~np.isnan(values).all(axis=0)
        middle, low, high = (np.full(len(iterations), np.nan) for _ in range(3))
        middle[known] = np.nanmean(values[:, known], axis=0)
        low[known] = np.nanmin(values[:, known], axis=0)
        high[known] = np.nanmax(values[:, known], axis=0)
        columns[metric], bands[metric] = middle, (low, high)
    return Curves(name, columns, _held_out(runs), color, bands)


def _at(run: Curves, metric: str, iterations: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.full(len(iterations), np.nan)
    if metric in run.columns:
        values[np.searchsorted(iterations, run.x("iteration"))] = run.columns[metric]
    return values


def _held_out(runs: Sequence[Curves]) -> list[EvaluationPoint]:
    """Return mean, lowest and highest of the runs' means of each evaluation."""
    means: dict[int, list[float]] = {}
    for run in runs:
        for point in run.held_out:
            means.setdefault(point.iteration, []).append(point.mean)
    return [
        EvaluationPoint(done, mean(values), min(values), max(values))
        for done, values in sorted(means.items())
    ]

"""Comparisons of two methods on a task, paired over its held-out tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.shared.intervals import half_width, interval
from mlrl_learners.figures.comparisons import (
    mean_interval,
    paired_p_value,
    probability_of_improvement,
)
from mlrl_learners.figures.means import mean

__all__ = ["Comparison", "Run", "at_equal_time", "compare"]

MINUTES_STEP = 0.1  # to which minutes are rounded

Run = Mapping[str, Any]
"""A finished run: `task`, `method`, `seed`, `tokens`, `minutes`, `held_out` (update -> mean return)
and `returns` (of each held-out task, at the end)."""


@dataclass(frozen=True)
class Comparison:
    """Two methods on a task, paired over its held-out tasks.

    Attributes:
        ours: Mean return of the first method.
        theirs: Mean return of the second.
        gap: Mean difference.
        interval: Ends of its 95 % bootstrap interval over held-out tasks, for these trained models.
        by_seed: Mean difference of each seed that both have.
        probability: Probability that the first is better on a task.
        p: Of the paired permutation test.
    """

    ours: float
    theirs: float
    gap: float
    interval: tuple[float, float]
    by_seed: Sequence[float]
    probability: float
    p: float

    @property
    def over_seeds(self) -> str:
        """The difference, with half of its 95 % interval of Student's t over training seeds."""
        return interval(self.gap, half_width(self.by_seed))

    @property
    def sign(self) -> int:
        """1 or -1 if the interval over training seeds excludes 0, else 0."""
        width = half_width(self.by_seed)
        if width is None or abs(self.gap) <= width:
            return 0
        return 1 if self.gap > 0 else -1

    @property
    def over_tasks(self) -> str:
        """The interval over held-out tasks."""
        return f"[{self.interval[0]:+.2f}, {self.interval[1]:+.2f}]"

    @property
    def seeds(self) -> str:
        """The differences by seed."""
        return ", ".join(f"{gap:+.2f}" for gap in self.by_seed)


def at_equal_time(runs: Sequence[Run], name: str, first: str, second: str) -> list[float]:
    """Return by seed the difference of two methods when the faster one has finished.

    The held-out return of the slower one is interpolated between its evaluations. The minutes of a
    method are those of its fastest run, because other processes slow runs down.

    Args:
        runs: Finished runs, as `read_run` returns them.
        name: Name of the task.
        first: Name of a method.
        second: Name of the method that it is compared with.
    """
    mine, seeds = _paired(runs, name, first, second)
    minutes = {
        method: max(
            MINUTES_STEP / 2,  # stored minutes of a run of seconds are 0
            min(each["minutes"] for (other, _), each in mine.items() if other == method),
        )
        for method in (first, second)
    }
    shares = {method: min(minutes.values()) / minutes[method] for method in minutes}
    return [
        _after(mine[first, seed], shares[first]) - _after(mine[second, seed], shares[second])
        for seed in seeds
    ]


def _paired(
    runs: Sequence[Run], name: str, first: str, second: str
) -> tuple[dict[tuple[str, int], Run], list[int]]:
    """Return the runs of a task by method and seed, and the seeds that both methods have."""
    mine = {(each["method"], each["seed"]): each for each in runs if each["task"] == name}
    return mine, sorted({seed for _, seed in mine if {(first, seed), (second, seed)} <= set(mine)})


def _after(run: Run, share: float) -> float:
    """Return the held-out return after a share of the updates."""
    held_out = sorted((int(at), value) for at, value in run["held_out"].items())
    updates, values = zip(*held_out, strict=True)
    return float(np.interp(share * updates[-1], updates, values))


def compare(runs: Sequence[Run], name: str, first: str, second: str) -> Comparison | None:
    """Return the comparison of two methods; None if they have no seed in common.

    Args:
        runs: Finished runs, as `read_run` returns them.
        name: Name of the task.
        first: Name of a method.
        second: Name of the method that it is compared with.
    """
    mine, seeds = _paired(runs, name, first, second)
    if not seeds:
        return None
    ours, theirs = (
        list(zip(*(mine[method, seed]["returns"] for seed in seeds), strict=True))
        for method in (first, second)
    )
    means = [[mean(list(each)) for each in values] for values in (ours, theirs)]
    gaps = [one - other for one, other in zip(*means, strict=True)]
    ends = mean_interval([gaps]) or (mean(gaps), mean(gaps))
    return Comparison(
        ours=mean(means[0]),
        theirs=mean(means[1]),
        gap=mean(gaps),
        interval=ends,
        by_seed=[
            mean(mine[first, seed]["returns"]) - mean(mine[second, seed]["returns"])
            for seed in seeds
        ],
        probability=probability_of_improvement(ours, theirs),
        p=paired_p_value([means[0]], [means[1]]),
    )

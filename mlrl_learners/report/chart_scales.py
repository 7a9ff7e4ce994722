"""Numbers of a chart: ticks, labels, smoothing and thinning."""

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Point",
    "Table",
    "counted",
    "inner_ticks",
    "log_ticks",
    "nice_ticks",
    "number",
    "return_text",
    "running_mean",
    "thin",
    "tick_labels",
]

Point: TypeAlias = tuple[float, float]
Table: TypeAlias = NDArray[np.float64]
"""Points, `[N, 2]`."""


def nice_ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """Return evenly spaced round numbers that cover the range from `low` to `high`.

    Args:
        low: Smallest value.
        high: Largest value, not below `low`.
        count: Approximate number of steps.
        whole: Whether ticks must be whole numbers.
    """
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-9):
        near = abs(low) * 0.1  # fits small values such as learning rates
        margin = max(near, 1.0) if whole else near
        low, high = (low - margin, high + margin) if abs(low) > 1e-12 else (0.0, 1.0)
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * unit for unit in (1, 2, 5, 10) if power * unit >= raw * 0.999)
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, max(last, first + 1) + 1)]


def inner_ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """Return evenly spaced round numbers inside a range, for an axis that ends where data ends.

    Both ends are returned instead if fewer than two round numbers lie inside, and the result of
    `nice_ticks` if the range has no length. Arguments are those of `nice_ticks`.
    """
    ticks = nice_ticks(low, high, count, whole=whole)
    if not low < high:
        return ticks
    slack = 1e-9 * (high - low)
    inside = [tick for tick in ticks if low - slack <= tick <= high + slack]
    return inside if len(inside) > 1 else [low, high]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Return powers of ten that cover the range from `low` to `high`, both positive.

    Args:
        low: Smallest value.
        high: Largest value.
        count: Approximate maximum number of steps.
    """
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    step = math.ceil((last - first) / max(count, 1))
    return [10.0**power for power in range(first, last + step, step)]


def number(value: float, digits: int = 0) -> str:
    """Format a number in few characters: `0.25`, `12`, `1.5k`, `3e-6`.

    Args:
        value: The number.
        digits: Least number of significant digits, without zeros at the end.
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        return f"{value:.{max(2, digits)}g}".replace("e-0", "e-").replace("e+0", "e")
    if size >= 1e4:
        return f"{value / 1000:.{max(3, digits)}g}k"
    return f"{value:.{max(4 if size >= 1 else 3, digits)}g}"


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Format ascending ticks as `number` does, with enough digits to tell them apart.

    Args:
        ticks: At least two different numbers.
    """
    largest = max(map(abs, ticks))
    steps = [after - before for before, after in itertools.pairwise(ticks)]
    step = max(min(steps), 1e-11 * largest)  # more digits would show rounding errors
    digits = math.floor(math.log10(largest)) - math.floor(math.log10(step)) + 1
    return [number(tick, digits) for tick in ticks]


def counted(count: float, noun: str) -> str:
    """Return a whole number with its noun: `1 iteration`, `2,000 iterations`."""
    return f"{count:,.0f} {noun}" if f"{count:.0f}" == "1" else f"{count:,.0f} {noun}s"


def return_text(value: float) -> str:
    """Format a return as `number` does, without the rounding errors of sums."""
    return number(round(value, 9))


def running_mean(points: Table, window: int) -> Table:
    """Return the mean of each point `[N, 2]` and the `window - 1` before it."""
    ys = points[:, 1]
    if not len(ys):
        return points
    window = min(window, len(ys))
    covered = np.minimum(np.arange(1, len(ys) + 1), window)
    sums = np.convolve(ys, np.ones(window))[: len(ys)]
    return np.column_stack([points[:, 0], sums / covered])


def thin(points: Table, most: int) -> list[Point]:
    """Return at most `most` of the points `[N, 2]`, because a screen has no more columns.

    Each group of consecutive points is replaced by its last x and its mean y.
    """
    if len(points) > most:
        starts = np.arange(most) * len(points) // most
        ends = np.append(starts[1:], len(points))
        means = np.add.reduceat(points[:, 1], starts) / (ends - starts)
        points = np.column_stack([points[ends - 1, 0], means])
    return list(zip(points[:, 0].tolist(), points[:, 1].tolist(), strict=True))

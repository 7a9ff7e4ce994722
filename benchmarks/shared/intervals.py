"""Intervals of means over training seeds, as numbers and as text."""

from collections.abc import Sequence

from scipy import stats

__all__ = ["half_width", "interval"]


def half_width(values: Sequence[float]) -> float | None:
    """Return half the width of the 95 % interval of the mean, by Student's t."""
    if len(values) < 2:
        return None
    return round(float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)), 4)


def interval(value: float | None, width: float | None) -> str:
    """Return a difference with half the width of its interval; nothing where there is none."""
    if value is None:
        return ""
    return f"{value:+.2f}" + ("" if width is None else f" ± {width:.2f}")

"""Axes of a line chart: scales, ticks, grid and labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_learners.report.chart_scales import (
    Point,
    inner_ticks,
    log_ticks,
    nice_ticks,
    tick_labels,
)
from mlrl_learners.report.html import Html, tag

__all__ = ["RIGHT", "Frame", "Scale", "axes", "frame_of", "text_at"]

RIGHT, _TOP, _BOTTOM = 14.0, 8.0, 40.0


@dataclass(frozen=True)
class Scale:
    """Mapping of values to coordinates.

    Attributes:
        low: Value at `start`.
        high: Value at `end`, above `low`.
        start: Coordinate.
        end: Coordinate.
        log: Whether it is logarithmic; values must then be positive.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        share = (value - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)

    def span(self) -> str:
        """Return the values at the ends and their coordinates, for the script."""
        return f"{self.low!r} {self.high!r} {self.start:g} {self.end:g}{' log' * self.log}"


@dataclass(frozen=True)
class Frame:
    """Scales and ticks of a chart."""

    x: Scale
    y: Scale
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]


def frame_of(
    size: tuple[float, float],
    points: Sequence[Point],
    *,
    y_range: Point | None,
    log: bool,
    steps: tuple[int, int],
    right: float = RIGHT,
) -> Frame:
    """Return the frame of a chart, whose x axis ends where the data ends.

    Args:
        size: Width and height of the drawing.
        points: All points, at least one.
        y_range: Ends of the y axis; None to fit the data.
        log: Whether the y axis is logarithmic; all y must then be positive.
        steps: Approximate number of ticks along x and y.
        right: Room beside the end of the x axis.
    """
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_ticks = inner_ticks(min(xs), max(xs), steps[0], whole=True)
    y_ticks = _y_ticks(min(ys), max(ys), y_range, steps[1], log=log)
    x_range = (min(xs), max(xs)) if min(xs) < max(xs) else (x_ticks[0], x_ticks[-1])
    left = 16.0 + 7.5 * max(map(len, tick_labels(y_ticks)))
    return Frame(
        Scale(*x_range, left, size[0] - right),
        Scale(y_ticks[0], y_ticks[-1], size[1] - _BOTTOM, _TOP, log),
        x_ticks,
        y_ticks,
    )


def axes(frame: Frame, x_label: str) -> list[Html]:
    """Draw grid, axis and ticks with their numbers, and the label of the x axis."""
    bottom, left, right = frame.y.start, frame.x.start, frame.x.end
    drawn: list[Html] = []
    for tick, label in zip(frame.y_ticks, tick_labels(frame.y_ticks), strict=True):
        y = frame.y(tick)
        drawn.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        drawn.append(text_at(label, left - 7, y + 4, anchor="end"))
    for tick, label in zip(frame.x_ticks, tick_labels(frame.x_ticks), strict=True):
        x = frame.x(tick)
        drawn.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis"))
        drawn.append(text_at(label, x, bottom + 18, anchor="middle"))
    drawn.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    drawn.append(text_at(x_label, (left + right) / 2, bottom + 34, anchor="middle"))
    return drawn


def text_at(text: str, x: float, y: float, *, anchor: str) -> Html:
    """Return a line of text."""
    return tag("text", text, x=round(x, 1), y=round(y, 1), text_anchor=anchor)


def _y_ticks(
    low: float, high: float, y_range: Point | None, steps: int, *, log: bool
) -> Sequence[float]:
    if log:
        return log_ticks(low, high, steps)
    if y_range is not None and y_range[0] <= low and high <= y_range[1]:
        return nice_ticks(*y_range, steps)
    return nice_ticks(0.0 if 0 <= low < 0.6 * high else low, high, steps)

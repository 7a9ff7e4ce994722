"""Names of lines beside their ends, in place of a legend."""

from collections.abc import Sequence

from mlrl_learners.report.chart_frame import Frame, text_at
from mlrl_learners.report.chart_scales import Point
from mlrl_learners.report.html import Html, tag

__all__ = ["draw_label", "room", "short_names", "spread"]

_GAP = 15.0
_CHARACTER = 8.2
_LEADER = 14.0
_LONGEST = 22


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names up to their first comma where they still differ, at most 22 characters."""
    heads = [name.partition(",")[0] for name in names]
    chosen = heads if len(set(heads)) == len(names) else names
    return [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in chosen]


def room(names: Sequence[str]) -> float:
    """Return the width that leader and name need beside the axis."""
    return _LEADER + 6 + _CHARACTER * max(map(len, names))


def spread(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return heights near the given ones, at least 15 apart; within the range if they fit there."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    least = top
    for index in order:
        placed[index] = max(placed[index], least)
        least = placed[index] + _GAP
    most = bottom
    for index in reversed(order):
        placed[index] = min(placed[index], most)
        most = placed[index] - _GAP
    return placed


def draw_label(frame: Frame, end: Point, name: str, height: float) -> list[Html]:
    """Draw a name beside the axis and a thin line to it.

    Args:
        frame: Scales of the chart.
        end: Last point of the line.
        name: Its name.
        height: Coordinate of the name.
    """
    right = frame.x.end + _LEADER
    leader = (
        f"M{frame.x(end[0])} {frame.y(end[1])}L{frame.x.end} {frame.y(end[1])}L{right} {height:.1f}"
    )
    return [
        tag("path", d=leader, class_="leader"),
        text_at(name, right + 4, height + 4, anchor="start"),
    ]

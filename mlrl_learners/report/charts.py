"""Line charts as inline SVG.

Colours come from the style sheet, which has a light and a dark theme. Lines also differ by dash and
mark, so that they can be told apart without colour. Scales and ticks are in `chart_frame`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mlrl_learners.report.chart_frame import RIGHT, Frame, axes, frame_of, text_at
from mlrl_learners.report.chart_labels import draw_label, room, short_names, spread
from mlrl_learners.report.chart_scales import Point, number
from mlrl_learners.report.html import Html, tag, without_overrides

__all__ = ["COLORS", "GREATEST", "Chart", "Series", "draw", "swatch"]

COLORS = 24
"""Number of line colours in the style sheet."""

_DASHES = 8
_FEW_BANDS = 2
_MOST_LABELS = 8

LEAST = 1e-100  # on a logarithmic axis
GREATEST = 1e100
"""Values of this size and above are not drawn, because they would overflow in the layout."""


@dataclass(frozen=True)
class Series:
    """One line or set of marks.

    Attributes:
        name: Name in the legend; empty for none.
        points: `(x, y)` in order of x; values that are not finite or above 1e100 are left out.
        kind: A `line`, a `faint` line behind others, or `marks` joined by a thin line.
        color: Index of a colour in the style sheet, in [0, `COLORS`).
        intervals: Bounds of each point, or empty: a band about a line, bars at marks.
        run: Name of the run or agent that is highlighted together in all charts.
    """

    name: str
    points: Sequence[Point]
    kind: Literal["line", "faint", "marks"] = "line"
    color: int = 0
    intervals: Sequence[Point] = ()
    run: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart: a title, labelled axes and series.

    Attributes:
        title: Shown above the chart and used as its text alternative.
        x_label: Label of the horizontal axis, with its unit.
        y_label: Unit of the vertical axis, shown beside the title; `share` for values in [0, 1].
        series: Lines; without any point the chart shows a message instead.
        large: Whether it is drawn at full width.
        legend: Whether to name the series below the drawing.
        log: Whether the vertical axis is logarithmic; values below 1e-100 are left out.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series] = field(default_factory=tuple)
    large: bool = False
    legend: bool = True
    log: bool = False


def draw(chart: Chart) -> Html:
    """Return a figure: caption, drawing and legend."""
    chart = replace(chart, title=without_overrides(chart.title))
    series = [_drawable(one, log=chart.log) for one in chart.series]
    series = [one for one in series if one.points]
    unit = tag("span", chart.y_label, class_="quiet") if chart.y_label != chart.title else None
    caption = tag("figcaption", chart.title, " ", unit)
    size = "large" if chart.large else "small"
    if not series:
        said = "No value above 0 to draw." if chart.log else "Nothing yet."
        return tag("figure", caption, tag("p", said, class_="quiet"), class_=f"chart {size}")
    width, height = (1000.0, 310.0) if chart.large else (340.0, 200.0)
    labels = _labels(chart, series)
    frame = frame_of(
        (width, height),
        _extent(series),
        y_range=(0.0, 1.0) if chart.y_label == "share" else None,
        log=chart.log,
        steps=(6, 5) if chart.large else (3, 3),
        right=room(list(labels.values())) if labels else RIGHT,
    )
    drawing = tag(
        "svg",
        tag("title", _summary(chart.title, series)),
        axes(frame, chart.x_label),
        _zero_note(frame, series),
        _draw_bands(frame, series),
        [_draw_series(frame, one) for one in series],
        _draw_labels(frame, series, labels),
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        class_=size,
        data_x=frame.x.span(),  # lets a script convert coordinates to values
        data_y=frame.y.span(),
    )
    named = _legend(series) if chart.legend else None
    return tag("figure", caption, drawing, named, class_=f"chart {size}")


def swatch(color: int) -> Html:
    """Return a short line in a colour."""
    return _swatch(Series("", [], color=color))


def _drawable(series: Series, *, log: bool) -> Series:
    bounds = series.intervals or [(y, y) for _, y in series.points]
    kept = [
        (point, bound)
        for point, bound in zip(series.points, bounds, strict=True)
        if all(abs(value) < GREATEST for value in (*point, *bound))  # false for NaN too
        and (not log or min(point[1], *bound) > LEAST)
    ]
    return replace(
        series,
        name=without_overrides(series.name),
        points=[point for point, _ in kept],
        intervals=[bound for _, bound in kept] if series.intervals else (),
    )


def _extent(series: Sequence[Series]) -> list[Point]:
    """Return all points and the ends of all intervals."""
    points = [point for one in series for point in one.points]
    pairs = [pair for one in series for pair in zip(one.points, one.intervals, strict=False)]
    return points + [(point[0], bound) for point, bounds in pairs for bound in bounds]


def _zero_note(frame: Frame, series: Sequence[Series]) -> Html | None:
    """Say that a line on the axis is a line of zeros."""
    if any(y for one in series for _, y in one.points):
        return None
    return text_at("0 throughout", (frame.x.start + frame.x.end) / 2, frame.y(0.0) - 8,
                   anchor="middle")  # fmt: skip


def _draw_series(frame: Frame, series: Series) -> Html:
    parts: list[Html] = []
    if len(series.points) > 1:
        path = " ".join(f"{frame.x(x)},{frame.y(y)}" for x, y in series.points)
        parts.append(tag("polyline", points=path))
    if series.kind == "marks":
        parts += [_bar(frame, *pair) for pair in zip(series.points, series.intervals, strict=False)]
    if series.kind == "marks" or len(series.points) == 1:
        parts += [_mark(frame, series, point) for point in series.points]
    return _group(series, parts, _classes(series))


def _draw_bands(frame: Frame, series: Sequence[Series]) -> list[Html]:
    """Return the bands, which lie below all lines; many are paler than few."""
    banded = [one for one in series if one.kind == "line" and one.intervals]
    kind = "bands many" if len(banded) > _FEW_BANDS else "bands"
    return [
        _group(one, [_band(frame, one)], f"series {kind} c{one.color % COLORS}") for one in banded
    ]


def _labels(chart: Chart, series: Sequence[Series]) -> dict[int, str]:
    """Return index of a series -> the name beside its end, in large charts without a legend."""
    named = [index for index, one in enumerate(series) if one.kind == "line" and one.name]
    if chart.legend or not chart.large or not 1 < len(named) <= _MOST_LABELS:
        return {}
    names = short_names([series[index].name for index in named])
    return dict(zip(named, names, strict=True))


def _draw_labels(frame: Frame, series: Sequence[Series], labels: Mapping[int, str]) -> list[Html]:
    ends = [series[index].points[-1] for index in labels]
    heights = spread([frame.y(y) for _, y in ends], frame.y.end, frame.y.start)
    return [
        _group(series[index], draw_label(frame, end, name, height), _classes(series[index]))
        for (index, name), end, height in zip(labels.items(), ends, heights, strict=True)
    ]


def _group(series: Series, parts: Sequence[Html], classes: str) -> Html:
    return tag(
        "g",
        parts,
        class_=classes,
        data_name=series.name or None,
        data_run=series.run or series.name or None,
    )


def _band(frame: Frame, series: Series) -> Html:
    places = list(zip(series.points, series.intervals, strict=True))
    upper = [(x, high) for (x, _), (_, high) in places]
    lower = [(x, low) for (x, _), (low, _) in reversed(places)]
    corners = " ".join(f"{frame.x(x)},{frame.y(y)}" for x, y in [*upper, *lower])
    return tag("polygon", points=corners, class_="band")


def _bar(frame: Frame, point: Point, bounds: Point) -> Html:
    at = frame.x(point[0])
    return tag("line", x1=at, x2=at, y1=frame.y(bounds[0]), y2=frame.y(bounds[1]), class_="bar")


def _mark(frame: Frame, series: Series, point: Point) -> Html:
    hint = f"{series.name}: {number(point[1])} at {number(point[0])}"
    return tag("circle", tag("title", hint), cx=frame.x(point[0]), cy=frame.y(point[1]), r=4)


def _legend(series: Sequence[Series]) -> Html | None:
    named = [one for one in series if one.name]
    if not named:
        return None
    return tag(
        "p",
        [tag("span", _swatch(one), without_overrides(one.name)) for one in named],
        class_="legend",
    )


def _swatch(series: Series) -> Html:
    return tag(
        "svg",
        tag("polyline", points="0,6 26,6"),
        tag("circle", cx=13, cy=6, r=4) if series.kind == "marks" else None,
        viewBox="0 0 26 12",
        class_=f"swatch {_classes(series)}",
        aria_hidden="true",
    )


def _classes(series: Series) -> str:
    color = series.color % COLORS
    return f"series {series.kind} c{color} d{color % _DASHES}"


def _summary(title: str, series: Sequence[Series]) -> str:
    parts = [
        f"{one.name or 'value'} from {number(one.points[0][1])} to {number(one.points[-1][1])}"
        for one in series
        if one.kind != "faint"
    ]
    return f"{title}: {'; '.join(parts)}" if parts else title

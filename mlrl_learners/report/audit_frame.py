"""Frame of the charts of audits: title, summary, rows below each other, and a legend."""

from collections.abc import Callable, Iterable, Sequence

from mlrl_learners.report.html import Html, tag

__all__ = ["GRID", "HONEST", "TOP", "WIDTH", "framed", "line_at", "text_at"]

WIDTH, TOP = 480, 72
INK, GRID, PALE, HONEST = "#1c1f23", "#e1e4e8", "#5b636c", "#0b62a8"
_ROW, _LEGEND = 20, 74
_SHOWN_WIDTH = 600  # larger than the drawing, so that its text is legible on a narrow screen


def framed(
    title: str,
    summary: Sequence[str],
    rows: Sequence[Callable[[float], Iterable[Html]] | str],
    grid: Callable[[float], Iterable[Html]],
    legend: Sequence[str],
) -> Html:
    """Return a chart as an SVG file.

    Args:
        title: First line.
        summary: Two lines below it, also the accessible name.
        rows: From the upper end of a row to its marks; a string is a heading.
        grid: From the lower end of the rows to the marks behind them.
        legend: Lines below the axis.
    """
    bottom = TOP + _ROW * len(rows) + 4
    height = bottom + _LEGEND
    return tag(
        "svg",
        tag("title", f"{title}: {'; '.join(summary)}"),
        tag("rect", width=WIDTH, height=height, fill="#ffffff"),
        text_at(title, 10, 20, size=15, weight="bold"),
        [text_at(line, 10, 38 + 16 * i, size=12) for i, line in enumerate(summary)],
        list(grid(bottom)),
        [
            text_at(row, 10, y + 14, size=12, color=PALE) if isinstance(row, str) else list(row(y))
            for row, y in zip(rows, range(TOP, bottom, _ROW), strict=False)
        ],
        [
            text_at(line, 10, bottom + 34 + 15 * i, size=11.5, color=PALE)
            for i, line in enumerate(legend)
        ],
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=_SHOWN_WIDTH,
        height=round(height * _SHOWN_WIDTH / WIDTH),
        role="img",
        font_family="system-ui, sans-serif",
    )


def line_at(
    x1: float, y1: float, x2: float, y2: float, color: str, dashes: str | None = None
) -> Html:
    """Return a line between two points."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, stroke_dasharray=dashes)


def text_at(
    text: str,
    x: float,
    y: float,
    anchor: str = "start",
    *,
    size: float = 13,
    weight: str = "normal",
    color: str = INK,
) -> Html:
    """Return a line of text."""
    return tag(
        "text", text, x=x, y=y, text_anchor=anchor, font_size=size, font_weight=weight, fill=color
    )

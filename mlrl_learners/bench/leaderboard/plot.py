"""Scatter plot of mean return against tokens written, as inline SVG.

Colours come from the style sheet of the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_learners.bench.leaderboard.rows import LeaderboardGroup, LeaderboardRow
from mlrl_learners.report.chart_scales import nice_ticks, number
from mlrl_learners.report.charts import COLORS
from mlrl_learners.report.html import Html, tag, without_overrides

__all__ = ["draw_plot"]

WIDTH, HEIGHT = 720.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 24.0, 16.0, 50.0
LINE = 15.0
CHARACTER = 7.0


@dataclass(frozen=True)
class _Scales:
    """Ticks of both axes, and the mapping of values to coordinates of the drawing."""

    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    @classmethod
    def of(cls, rows: Sequence[LeaderboardRow]) -> "_Scales":
        ranges = [_range(row) for row in rows]
        highest = max([high for _, high in ranges] + [0.01])
        lowest = min([low for low, _ in ranges] + [0.0])
        most = max([*(row.tokens or 0.0 for row in rows), 10.0])
        return cls(nice_ticks(0.0, most, 6), nice_ticks(lowest, highest, 5))

    def x(self, value: float) -> float:
        return round(LEFT + (value / self.x_ticks[-1]) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.y_ticks[0]) / (self.y_ticks[-1] - self.y_ticks[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def draw_plot(group: LeaderboardGroup, colors: Sequence[str]) -> Html:
    """Return the drawing of a group.

    Args:
        group: At least one row; rows without a token count are left out.
        colors: Every actor of the page, so that an actor has one colour in all plots.
    """
    rows = [row for row in group.rows if row.tokens is not None]
    scales = _Scales.of([*rows, *(row for row in group.rows if row.bound)])
    title = f"Mean return against tokens written an episode: {group.suite}, {group.entry}"
    return tag(
        "svg",
        tag("title", title),
        [_grid_line(scales.y(tick), number(round(tick, 9))) for tick in scales.y_ticks],
        [
            _text(number(round(tick, 9)), scales.x(tick), HEIGHT - BOTTOM + 20)
            for tick in scales.x_ticks
        ],
        _text("tokens written an episode", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8),
        tag(
            "text",
            "mean return",
            x=14,
            y=(TOP + HEIGHT - BOTTOM) / 2,
            text_anchor="middle",
            transform=f"rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2:g})",
        ),
        [_level(row, scales) for row in group.rows if row.bound and row.tokens is None],
        _marks(rows, scales, colors),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
    )


def _range(row: LeaderboardRow) -> tuple[float, float]:
    return row.interval or (row.mean, row.mean)


def _marks(rows: Sequence[LeaderboardRow], scales: _Scales, colors: Sequence[str]) -> list[Html]:
    places = [(scales.x(row.tokens or 0.0), scales.y(row.mean)) for row in rows]
    labels = _label_places(rows, places)
    return [
        tag(
            "g",
            tag("title", _hint(row)),
            tag("line", x1=px, x2=px, y1=scales.y(low), y2=scales.y(high), class_="bar"),
            tag("circle", cx=px, cy=py, r=5),
            tag("text", row.actor, x=lx, y=ly, text_anchor=anchor),
            class_=f"mark c{colors.index(row.actor) % COLORS}",
            data_actor=row.actor,
        )
        for row, (px, py), (lx, ly, anchor) in zip(rows, places, labels, strict=True)
        for low, high in [_range(row)]
    ]


def _level(row: LeaderboardRow, scales: _Scales) -> Html:
    """Draw the reference or the random actor, whose tokens nobody counts, as a line."""
    y = scales.y(row.mean)
    return tag(
        "g",
        tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y),
        tag("text", f"{without_overrides(row.actor)} {row.mean:.3f}", x=WIDTH - RIGHT, y=y - 5,
            text_anchor="end"),
        class_="level",
    )  # fmt: skip


def _hint(row: LeaderboardRow) -> str:
    name = without_overrides(row.actor)
    return f"{name}: {row.mean:.3f} for {row.tokens:.0f} tokens an episode"


def _label_places(
    rows: Sequence[LeaderboardRow], places: Sequence[tuple[float, float]]
) -> list[tuple[float, float, str]]:
    """Return the place of each name: beside its mark, moved vertically to avoid overlaps."""
    taken: list[tuple[float, float, float]] = []
    found: dict[int, tuple[float, float, str]] = {}
    for index in sorted(range(len(rows)), key=lambda i: places[i][1]):
        px, py = places[index]
        width = CHARACTER * len(rows[index].actor)
        is_left = px + 10 + width > WIDTH - 4
        start = px - 10 - width if is_left else px + 10
        moves = [step * LINE * sign for step in range(12) for sign in (1, -1)]
        level = next(
            (
                py + 4 + move
                for move in moves
                if TOP <= py + move <= HEIGHT - BOTTOM - 2
                and all(
                    abs(py + 4 + move - other) >= LINE - 2 or end < start or begin > start + width
                    for begin, end, other in taken
                )
            ),
            py + 4,
        )
        taken.append((start, start + width, level))
        found[index] = (
            round(px - 10 if is_left else px + 10, 1),
            round(level, 1),
            "end" if is_left else "start",
        )
    return [found[index] for index in range(len(rows))]


def _grid_line(at: float, text: str) -> list[Html]:
    line = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid")
    return [line, tag("text", text, x=LEFT - 7, y=at + 4, text_anchor="end")]


def _text(text: str, x: float, y: float) -> Html:
    return tag("text", text, x=round(x, 1), y=y, text_anchor="middle")

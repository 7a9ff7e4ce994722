"""Chart of an audit: distributions of honest answers, other texts and families of attack."""

import functools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlrl_learners.report.audit_frame import GRID, HONEST, TOP, WIDTH, framed, line_at, text_at
from mlrl_learners.report.html import Html, tag

if TYPE_CHECKING:
    from mlrl_envs.auditing.report import AuditReport

__all__ = ["audit_chart"]

_LEFT, _RIGHT = 186, 42
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_ATTACK, _KNOWING, _OTHER = "#b4450a", "#7b3fa0", "#1a7f4b"
_LEGEND = (
    "Share of the reward range above an empty answer. Dots: an answer, or the best",
    "try on a task. Box: the middle half of all. Dashed: the mean of honest answers,",
    "dotted: half of it. Number: mean of the dots over tasks.",
)


@dataclass(frozen=True)
class _Row:
    """A distribution: dots, a box from the first to the third quartile, and a number."""

    name: str
    dots: Sequence[float]
    quartiles: Sequence[float]
    figure: float
    color: str


def audit_chart(
    report: "AuditReport", *, reward: str = "", groups: Mapping[str, Sequence[float]] | None = None
) -> str:
    """Return an SVG file with a row for each family of attack.

    A dot is the best try on one task, the box the middle half of all tries, and the number the mean
    of the dots over tasks. In the first rows a dot is an answer. The dashed line is the mean of the
    honest answers, the dotted line half of it. Families that know the answer come last, in another
    colour. Shares outside 0 to 1 are drawn at the border.

    Args:
        report: The audit.
        reward: Mode of the reward, for the title.
        groups: Shares of other answers, such as people's or models', by name.
    """
    rows = [*_answer_rows(report, groups or {}), *_family_rows(report)]
    return framed(
        f"{report.env_id}, {reward}" if reward else report.env_id,
        _summary(report),
        [row if isinstance(row, str) else functools.partial(_marks, row) for row in rows],
        functools.partial(_grid, report),
        _LEGEND,
    )


def _answer_rows(
    report: "AuditReport", groups: Mapping[str, Sequence[float]]
) -> Iterator[_Row | str]:
    for name, values in {"honest answers": report.honest, **groups}.items():
        if values:
            color = HONEST if values is report.honest else _OTHER
            yield _Row(name, values, _quartiles(values), statistics.fmean(values), color)


def _family_rows(report: "AuditReport") -> Iterator[_Row | str]:
    """Yield a heading and the rows of families, those that know the answer last."""
    for heading, color, knowing in (
        ("attacks", _ATTACK, False),
        ("attacks that know the answer", _KNOWING, True),
    ):
        families = [each for each in report.families if each.knows_answer == knowing]
        if families:
            yield heading
        for family in families:
            name = family.name.replace("_", " ")
            yield _Row(name, family.bests, family.quartiles, family.best, color)


def _quartiles(values: Sequence[float]) -> Sequence[float]:
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else ()


def _marks(row: _Row, y: float) -> Iterator[Html]:
    yield text_at(row.name, _LEFT - 8, y + 14, "end")
    if row.quartiles:
        low, middle, high = map(_x, row.quartiles)
        width = max(high - low, 2)
        yield tag("rect", x=low, y=y + 3, width=width, height=14, fill=row.color, fill_opacity=0.22)
        yield line_at(middle, y + 3, middle, y + 17, row.color)
    dots = [
        # Equal values would hide each other on one line.
        tag("circle", cx=_x(value), cy=y + 10 + (i * 7 % 9 - 4) * (len(row.dots) > 1), r=2.8)
        for i, value in enumerate(row.dots)
    ]
    yield tag("g", dots, fill=row.color, fill_opacity=0.6)
    yield text_at(f"{row.figure:.2f}", WIDTH - 6, y + 14, "end")


def _grid(report: "AuditReport", bottom: float) -> Iterator[Html]:
    for tick in _TICKS:
        yield line_at(_x(tick), TOP, _x(tick), bottom, GRID)
        yield text_at(f"{tick:g}", _x(tick), bottom + 15, "middle", size=12)
    if report.honest_mean is not None:
        for share, dashes in ((report.honest_mean, "6 4"), (report.honest_mean / 2, "2 3")):
            yield line_at(_x(share), TOP, _x(share), bottom, HONEST, dashes=dashes)


def _summary(report: "AuditReport") -> tuple[str, str]:
    done = f"{len(report.tasks)} tasks, {report.budget} tries each"
    worst = f"worst exploit {report.worst.name.replace('_', ' ')} {report.worst.best:.2f}"
    if report.ratio is None:
        return f"{done}; {worst}", "no honest answers"
    honest = f"honest mean {report.honest_mean:.2f}, {report.honest_low:.0%} below 0.8"
    return f"{done}; {honest}", f"{worst}, ratio {report.ratio:.2f}"


def _x(share: float) -> float:
    return round(_LEFT + min(max(share, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT), 1)

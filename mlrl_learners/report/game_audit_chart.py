"""Chart of the audit of a game: the gain of each attack over the best script."""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlrl_learners.report.audit_frame import GRID, HONEST, TOP, WIDTH, framed, line_at, text_at
from mlrl_learners.report.chart_scales import nice_ticks, number
from mlrl_learners.report.html import Html, tag

if TYPE_CHECKING:
    from mlrl_envs.auditing.game_report import GameAuditReport, SeatResult

__all__ = ["game_audit_chart"]

_LEFT, _RIGHT = 142, 58
_STEPS = 5
_ERRORS = 3.0  # of `GameAuditReport`
_PAYS, _LOSES = "#b4450a", "#1a7f4b"
_HEADINGS = {"one": "one seat", "all": "all seats"}
_LEGEND = (
    "Gain over the best script in the same seat, in units of the payoff, with three",
    "standard errors. Small dots: single seats. Dashed: the best script. Orange:",
    "earns more than it.",
)


def game_audit_chart(report: "GameAuditReport") -> str:
    """Return an SVG file with a row for each attack.

    A large dot is the gain over the best script, in units of the payoff, the line 3 standard errors
    to both sides; small dots are the gains in single seats. The dashed line is the best script.
    Attacks that earn more than it are drawn in another colour.

    Args:
        report: The audit.
    """
    rows: list[SeatResult | str] = []
    for seats, heading in _HEADINGS.items():
        found = [each for each in report.results if each.seats == seats]
        rows += [heading, *found] if found else []
    scale = _Scale(report)
    return framed(
        report.env_id,
        _summary(report),
        [row if isinstance(row, str) else functools.partial(_marks, row, scale) for row in rows],
        functools.partial(_grid, scale),
        _LEGEND,
    )


class _Scale:
    """Horizontal positions of gains, from the lowest to the highest that is drawn."""

    def __init__(self, report: "GameAuditReport") -> None:
        shown = [0.0]
        for each in report.results:
            margin = _ERRORS * each.error
            shown += [each.gain - margin, each.gain + margin, *each.by_seat.values()]
        self.ticks = nice_ticks(min(shown), max(shown), _STEPS)

    def __call__(self, gain: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return round(_LEFT + (gain - low) / (high - low) * (WIDTH - _LEFT - _RIGHT), 1)


def _marks(row: "SeatResult", scale: _Scale, y: float) -> Iterator[Html]:
    color = _PAYS if row.pays else _LOSES
    middle, margin = y + 10, _ERRORS * row.error
    yield text_at(row.name.replace("_", " "), _LEFT - 8, y + 14, "end")
    yield line_at(scale(row.gain - margin), middle, scale(row.gain + margin), middle, color)
    dots = [tag("circle", cx=scale(gain), cy=middle, r=2) for gain in row.by_seat.values()]
    yield tag("g", dots, fill=color, fill_opacity=0.5)
    yield tag("circle", cx=scale(row.gain), cy=middle, r=4, fill=color)
    yield text_at(f"{row.gain:+.2f}", WIDTH - 6, y + 14, "end")


def _grid(scale: _Scale, bottom: float) -> Iterator[Html]:
    for tick in scale.ticks:
        yield line_at(scale(tick), TOP, scale(tick), bottom, GRID)
        yield text_at(number(round(tick, 9)), scale(tick), bottom + 15, "middle", size=12)
    yield line_at(scale(0), TOP, scale(0), bottom, HONEST, dashes="6 4")


def _summary(report: "GameAuditReport") -> tuple[str, str]:
    worst, ratio = report.worst, report.ratio
    honest = f"script {report.script}, mean {report.honest_mean:.2f}"
    shown = "" if ratio is None else f", ratio {ratio:.2f}"
    name = worst.name.replace("_", " ")
    return (
        f"{len(report.tasks)} tasks; {honest}",
        f"worst attack {name}, mean {worst.mean:.2f}, gain {worst.gain:+.2f}{shown}",
    )

"""Chart of an audit: what each family of attack earned, beside honest answers."""

from typing import TYPE_CHECKING

from mlrl_learners.report.html import Html, tag

if TYPE_CHECKING:
    from mlrl_envs.auditing.report import AuditReport

__all__ = ["audit_chart"]

_WIDTH, _LEFT, _RIGHT = 760, 230, 60
_TOP, _ROW = 64, 22
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_INK, _GRID = "#1c1f23", "#e1e4e8"
_ATTACK, _KNOWING, _HONEST = "#b4450a", "#7b3fa0", "#0b62a8"


def audit_chart(report: "AuditReport") -> str:
    """Return an SVG file with a row for each family.

    A bar is the mean over tasks of the best try, a tick across it the mean over tries. The blue
    dots of the first row are the honest answers, the dashed line their mean. Families that know the
    answer come last, in another colour. Shares outside 0 to 1 are drawn at the border.
    """
    families = sorted(report.families, key=lambda family: family.knows_answer)
    height = _TOP + _ROW * (len(families) + 1) + 46
    bottom = height - 40
    parts = [
        _text(_title(report), 12, 22, size=14, weight="bold"),
        _text(_summary(report), 12, 42),
        *(
            part
            for tick in _TICKS
            for part in (
                _line(_x(tick), _TOP - 8, _x(tick), bottom, _GRID),
                _text(f"{tick:g}", _x(tick), bottom + 16, anchor="middle"),
            )
        ),
        _text("share of the reward range above an empty answer", _x(0.5), height - 8, "middle"),
        _text("honest answers", _LEFT - 10, _TOP + 12, "end"),
        *(
            tag("circle", cx=_x(value), cy=_TOP + 8, r=4, fill=_HONEST, fill_opacity=0.45)
            for value in report.honest
        ),
    ]
    for number, family in enumerate(families, start=1):
        y, color = _TOP + number * _ROW, _KNOWING if family.knows_answer else _ATTACK
        parts += [
            _text(family.name.replace("_", " "), _LEFT - 10, y + 12, "end"),
            tag("rect", x=_x(0), y=y + 2, width=_x(family.best) - _x(0), height=12, fill=color),
            _line(_x(family.mean), y, _x(family.mean), y + 16, _INK),
            _text(f"{family.best:.2f}", _x(family.best) + 6, y + 12),
        ]
    if report.honest_mean is not None:
        x = _x(report.honest_mean)
        parts.append(_line(x, _TOP - 8, x, bottom, _HONEST, dashes="5 4"))
    background = tag("rect", width=_WIDTH, height=height, fill="#ffffff")
    return tag(
        "svg",
        tag("title", f"{_title(report)}: {_summary(report)}"),
        background,
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH,
        height=height,
        role="img",
        font_family="system-ui, sans-serif",
    )


def _title(report: "AuditReport") -> str:
    return f"{report.env_id}: attacks on {len(report.tasks)} tasks, {report.budget} tries each"


def _summary(report: "AuditReport") -> str:
    worst = f"worst exploit {report.worst.name.replace('_', ' ')} {report.worst.best:.2f}"
    if report.ratio is None:
        return f"{worst}; no honest answers"
    return (
        f"{worst}; honest mean {report.honest_mean:.2f}, {report.honest_low:.0%} below 0.8; "
        f"ratio {report.ratio:.2f}"
    )


def _x(share: float) -> float:
    return round(_LEFT + min(max(share, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT), 1)


def _line(
    x1: float, y1: float, x2: float, y2: float, color: str, dashes: str | None = None
) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, stroke_dasharray=dashes)


def _text(
    text: str, x: float, y: float, anchor: str = "start", *, size: int = 12, weight: str = "normal"
) -> Html:
    return tag(
        "text",
        text,
        x=x,
        y=y,
        text_anchor=anchor,
        font_size=size,
        font_weight=weight,
        fill=_INK,
    )

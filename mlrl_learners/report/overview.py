"""Overview of a run: what it trains, how far it is, and what it reached."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlrl_learners.report.chart_scales import number
from mlrl_learners.report.configuration import planned_iterations
from mlrl_learners.report.html import Child, Html, isolated, tag
from mlrl_learners.report.panels import Curves
from mlrl_learners.runs.stored import UNREADABLE

__all__ = ["Overview", "command_of", "draw_overview", "duration", "tile"]

_RECENT = 20
"""Number of last iterations from which the remaining time is estimated."""


@dataclass(frozen=True)
class Overview:
    """What heads the page of a run and its report.

    Attributes:
        curves: Its metrics.
        options: Dotted name -> value of its configuration.
        command: Command that started it; empty if unknown.
        state: Whether it is still written, in words; empty where nobody looked.
    """

    curves: Curves
    options: Mapping[str, str]
    command: str = ""
    state: str = ""


def command_of(environment: str) -> str:
    """Return the command in an `environment.json`; empty if there is none."""
    try:
        command = json.loads(environment)["command"]
        if not isinstance(command, list) or not command:
            return ""
        return shlex.join([*_program(str(command[0])), *map(str, command[1:])])
    except UNREADABLE:
        return ""


def _program(path: str) -> list[str]:
    """Return how a program is called whose `sys.argv` begins with a path."""
    file = Path(path)
    if file.name == "__main__.py":
        is_ours = file.parent.name == "mlrl_learners"
        return ["mlrl"] if is_ours else ["python", "-m", file.parent.name]
    return ["python", file.name] if file.suffix == ".py" else [file.name or "python"]


def draw_overview(overview: Overview) -> Html:
    """Return subtitle, tiles and command."""
    tiles = [
        *_held_out(overview.curves),
        _progress(overview),
        *_time(overview),
        *_speed(overview.curves),
        _lost(overview.curves),
    ]
    return tag(
        "div",
        tag("p", _subtitle(overview), class_="facts"),
        tag("div", tiles, class_="tiles"),
        _command(overview.command),
        class_="overview",
    )


def duration(seconds: float) -> str:
    """Return a time in hours, minutes and seconds."""
    if not math.isfinite(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _subtitle(overview: Overview) -> list[Child]:
    names = [
        overview.options.get(f"{part}") for part in ("learner.name", "learner.model", "env.id")
    ]
    shown: list[Child] = [tag("span", overview.state, class_="pill")] if overview.state else []
    for name in filter(None, names):
        shown += [" · "] * (len(shown) > bool(overview.state)) + [isolated(name)]
    return shown


def _held_out(curves: Curves) -> list[Html]:
    if not curves.held_out:
        return []
    first, last = curves.held_out[0], curves.held_out[-1]
    points = [first, last] if first is not last else [last]
    spans = [f"{number(point.low)} to {number(point.high)}" for point in points]
    value = " → ".join(number(point.mean) for point in points)
    label = f"held-out return, 95 %: {', then '.join(spans)}"
    return [tile(label, value, wide=True)]


def _progress(overview: Overview) -> Html:
    done, planned = _done(overview.curves), planned_iterations(overview.options)
    value = f"{done:,} of {planned:,}" if planned else f"{done:,}"
    return tile("iterations", value)


def _time(overview: Overview) -> list[Html]:
    seconds = _known(overview.curves, "seconds")
    tiles = [tile("time in training", duration(_sum(seconds)))]
    planned, recent = planned_iterations(overview.options), seconds[-_RECENT:]
    left = (planned or 0) - _done(overview.curves)
    if left > 0 and recent:
        tiles.append(tile("left, at the recent speed", duration(left * _sum(recent) / len(recent))))
    return tiles


def _speed(curves: Curves) -> list[Html]:
    tokens, speeds = _known(curves, "train/tokens"), _known(curves, "time/tokens_per_second")
    found = [tile("sampled tokens", f"{_sum(tokens):,.0f}")] if tokens else []
    if recent := speeds[-_RECENT:]:
        found.append(tile("tokens a second", number(round(_sum(recent) / len(recent), 1))))
    return found


def _lost(curves: Curves) -> Html:
    return tile("episodes lost to infrastructure",
                 f"{_sum(_known(curves, 'train/failed_episodes')):,.0f}")  # fmt: skip


def _command(command: str) -> Html | None:
    if not command:
        return None
    copy = tag("button", "Copy", type="button", data_copy=command, class_="enhanced")
    return tag("div", tag("code", command), copy, class_="command")


def _done(curves: Curves) -> int:
    iterations = curves.x("iteration")
    return int(iterations[-1]) if len(iterations) else 0


def _known(curves: Curves, metric: str) -> Sequence[float]:
    values = curves.columns.get(metric)
    return [] if values is None else [v for v in values.tolist() if not math.isnan(v)]


def _sum(values: Sequence[float]) -> float:
    """Return the sum; infinity if it is too large for a float."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return math.inf


def tile(label: str, value: str, *, wide: bool = False) -> Html:
    """Return a figure with its label below."""
    return tag("div", tag("b", value), tag("span", label), class_="tile wide" if wide else "tile")

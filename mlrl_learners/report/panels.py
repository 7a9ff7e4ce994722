"""Charts of the metrics of one or several runs.

For a single run, the lines of a chart are its agents or reward components. For several runs there
is one chart per agent or component, and the lines are the runs. Curves that are zero everywhere are
left out. Metrics that `panel_titles` does not list are drawn under their own name.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mlrl_learners.report.chart_scales import Point, Table, running_mean, thin
from mlrl_learners.report.charts import GREATEST, Chart, Series, draw
from mlrl_learners.report.html import Html, tag
from mlrl_learners.report.panel_titles import OF_AGENTS, REWARD, SAMPLERS, SPEED

__all__ = ["AXES", "Axis", "Curves", "EvaluationPoint", "draw_panels", "draw_returns"]

Axis: TypeAlias = Literal["iteration", "tokens", "seconds"]
AXES: tuple[Axis, ...] = get_args(Axis)

Values: TypeAlias = NDArray[np.float64]

EVERYTHING = (-math.inf, math.inf)
_AXIS_LABELS = {
    "iteration": "iteration",
    "tokens": "tokens sampled",
    "seconds": "seconds of training",
}
_MOST_POINTS = 400
_NO_POINTS: Table = np.empty((0, 2))
_ZERO = 1e-9  # a curve below it everywhere is left out
_SHARED = ("train", "time", "eval", "sampler")
_RIVAL = "train/return/"  # followed by the name of an opponent


@dataclass(frozen=True)
class EvaluationPoint:
    """Mean return of an evaluation after `iteration`, with its 95 % interval."""

    iteration: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Curves:
    """Metrics of one run.

    Attributes:
        name: Name of the run.
        columns: Metric -> one value per iteration, NaN if the iteration lacks it; includes
            `iteration` and usually `seconds`.
        held_out: Evaluations on one environment and split.
        color: Index of its colour.
        bands: Metric -> lowest and highest value per iteration, of a mean over several runs.
    """

    name: str
    columns: Mapping[str, Values]
    held_out: Sequence[EvaluationPoint] = field(default_factory=tuple)
    color: int = 0
    bands: Mapping[str, tuple[Values, Values]] = field(default_factory=dict)

    def x(self, axis: Axis) -> Values:
        """Return the position of each iteration on an axis."""
        if axis == "iteration":
            return self.columns.get("iteration", np.empty(0))
        steps = self.columns.get("train/tokens" if axis == "tokens" else "seconds")
        if steps is None:
            return np.full(len(self.x("iteration")), np.nan)
        with np.errstate(over="ignore"):
            return np.cumsum(np.nan_to_num(steps))

    def points(self, metric: str, axis: Axis) -> Table:
        """Return positions on an axis and values of a metric, where both can be drawn."""
        values = self.columns.get(metric)
        return _NO_POINTS if values is None else self._drawable(values, values, axis)

    def band(self, metric: str, axis: Axis) -> tuple[Table, Table]:
        """Return the lower and upper ends of the band about a metric, at each of `points`."""
        if metric not in self.bands:
            return _NO_POINTS, _NO_POINTS
        low, high = (self._drawable(self.columns[metric], e, axis) for e in self.bands[metric])
        return low, high

    def _drawable(self, values: Values, shown: Values, axis: Axis) -> Table:
        where = self.x(axis)
        known = (np.abs(values) < GREATEST) & (np.abs(where) < GREATEST)  # false for NaN too
        return np.column_stack([where[known], shown[known]])


@dataclass(frozen=True)
class _Panel:
    """Metrics of one chart, `lines`: label of a line -> metric."""

    title: str
    unit: str
    lines: Mapping[str, str]


def draw_panels(
    runs: Sequence[Curves],
    *,
    axis: Axis,
    smoothing: int,
    zoom: Point = EVERYTHING,
    log: bool = False,
) -> list[Html]:
    """Draw all metrics of some runs.

    Args:
        runs: Each with a colour of its own.
        axis: Horizontal axis.
        smoothing: Window of the running mean in iterations, at least 1.
        zoom: Part of the horizontal axis that is drawn.
        log: Whether vertical axes are logarithmic.
    """
    drawing = _Drawing(runs, axis, smoothing, zoom, log)
    parts = _two_sizes(drawing.returns())
    for title, panels in _sections(_names(runs)).items():
        charts = [chart for panel in panels for chart in drawing.charts(panel)]
        if charts:
            figures = [draw(chart) for chart in charts]
            parts.append(tag("h2", title, class_="section"))
            parts.append(tag("div", figures, class_="small-charts"))
    return parts


def draw_returns(run: Curves, *, smoothing: int) -> list[Html]:
    """Draw the main chart of a run: its return in training and on held-out tasks."""
    return _two_sizes(_Drawing([run], "iteration", smoothing, EVERYTHING, log=False).returns())


def _two_sizes(chart: Chart) -> list[Html]:
    """Draw a chart for wide and for narrow windows, of which one is shown."""
    return [
        tag("div", draw(chart), class_="wide-only"),
        tag("div", draw(replace(chart, large=False)), class_="narrow-only"),
    ]


@dataclass(frozen=True)
class _Drawing:
    """Options shared by all charts of a page."""

    runs: Sequence[Curves]
    axis: Axis
    smoothing: int
    zoom: Point
    log: bool

    def returns(self) -> Chart:
        """Return the main chart: team return in training and on held-out tasks."""
        alone = len(self.runs) == 1
        series: list[Series] = []
        for run in self.runs:
            color = run.color
            if alone and self.smoothing > 1:  # with several runs the chart would be unreadable
                each = thin(self._visible(run.points("train/return", self.axis)), _MOST_POINTS)
                series.append(Series("training, each iteration", each, "faint", color))
            mean = f"training, mean of {self.smoothing}" if self.smoothing > 1 else "training"
            name = mean if alone else run.name
            series.append(self._line(run, "train/return", name, color))
            name = "held-out, with 95 % interval" if alone else f"{run.name}, held-out"
            series.append(self._held_out(run, name, color + 1 if alone else color))
        label = _AXIS_LABELS[self.axis]
        return Chart("Return", label, "mean return", series, large=True, legend=alone, log=self.log)

    def charts(self, panel: _Panel) -> list[Chart]:
        """Return one chart for a single run, or one chart per line for several runs."""
        if len(self.runs) == 1:
            drawn = {panel.title: [(self.runs[0], lab, name) for lab, name in panel.lines.items()]}
        else:
            drawn = {
                ": ".join(filter(None, [panel.title, label])): [
                    (run, run.name, name) for run in self.runs
                ]
                for label, name in panel.lines.items()
            }
        charts = [self._chart(title, panel.unit, lines) for title, lines in drawn.items()]
        return [chart for chart in charts if _is_nonzero(chart)]

    def _chart(self, title: str, unit: str, lines: Sequence[tuple[Curves, str, str]]) -> Chart:
        alone = len(self.runs) == 1
        series = [
            self._line(run, name, label, index if alone else run.color)
            for index, (run, label, name) in enumerate(lines)
        ]
        return Chart(title, _AXIS_LABELS[self.axis], unit, series, legend=alone, log=self.log)

    def _line(self, run: Curves, metric: str, label: str, color: int) -> Series:
        low, high = (self._smooth(ends) for ends in run.band(metric, self.axis))
        bounds = [(below, above) for (_, below), (_, above) in zip(low, high, strict=True)]
        points = self._smooth(run.points(metric, self.axis))
        return Series(label, points, "line", color, bounds)

    def _smooth(self, points: Table) -> list[Point]:
        return thin(self._visible(running_mean(points, self.smoothing)), _MOST_POINTS)

    def _visible(self, points: Table) -> Table:
        x = points[:, 0]
        return points[(self.zoom[0] <= x) & (x <= self.zoom[1])]

    def _held_out(self, run: Curves, name: str, color: int) -> Series:
        iterations = run.x("iteration")
        where = run.x(self.axis)
        points, bounds = [], []
        for held in run.held_out:
            done = int(np.searchsorted(iterations, held.iteration, side="right"))
            x = held.iteration if self.axis == "iteration" else where[done - 1] if done else 0.0
            if self.zoom[0] <= x <= self.zoom[1]:
                points.append((float(x), held.mean))
                bounds.append((held.low, held.high))
        return Series(name, points, "marks", color, bounds, run=run.name)


def _names(runs: Sequence[Curves]) -> list[str]:
    return sorted({name for run in runs for name in run.columns} - {"iteration", "seconds"})


def _sections(names: Sequence[str]) -> dict[str, list[_Panel]]:
    """Return section title -> charts."""
    components = {name.split("/", 2)[2]: name for name in names if name.startswith("train/reward/")}
    reward = [_Panel("Reward parts", "mean", components)] if components else []
    rivals = {name.removeprefix(_RIVAL): name for name in names if name.startswith(_RIVAL)}
    reward += [_Panel("Return by opponent", "mean return", rivals)] if rivals else []
    reward += [_Panel(*REWARD[name], {"": name}) for name in REWARD if name in names]
    speed = [_Panel(*SPEED[name], {"": name}) for name in SPEED if name in names]
    samplers = [_Panel(*each) for each in SAMPLERS if set(each[2].values()) <= set(names)]
    drawn = {name for panel in (*reward, *speed, *samplers) for name in panel.lines.values()}
    shared = [n for n in names if _is_shared(n) and n not in drawn and n != "train/return"]
    rest = [_Panel(name, "value", {"": name}) for name in shared]
    agents = _agent_panels(names)
    titles = ("Reward", "Agents", "Speed", "Samplers", "Other")
    return dict(zip(titles, (reward, agents, speed, samplers, rest), strict=True))


def _agent_panels(names: Sequence[str]) -> list[_Panel]:
    lines: dict[str, dict[str, str]] = {}
    for name in names:
        if not _is_shared(name):
            agent, _, suffix = name.partition("/")
            lines.setdefault(suffix, {})[agent] = name
    ordered = [s for s in OF_AGENTS if s in lines] + [s for s in lines if s not in OF_AGENTS]
    return [
        _Panel(*OF_AGENTS.get(suffix, (_words(suffix), "value")), lines[suffix])
        for suffix in ordered
    ]


def _is_shared(name: str) -> bool:
    return "/" not in name or name.split("/", 1)[0] in _SHARED


def _words(suffix: str) -> str:
    words = suffix.replace("_", " ").replace("/", ": ")
    return words[:1].upper() + words[1:]


def _is_nonzero(chart: Chart) -> bool:
    return any(abs(y) > _ZERO for series in chart.series for _, y in series.points)

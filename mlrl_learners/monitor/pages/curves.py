"""Page of curves: several runs in the same charts."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from mlrl_learners.monitor.library import MonitoredRun, free_colors
from mlrl_learners.monitor.pages.layout import address, frame, hidden, options
from mlrl_learners.monitor.query import number_or_none
from mlrl_learners.monitor.states import done_iterations, state_of
from mlrl_learners.report.chart_scales import counted, number
from mlrl_learners.report.charts import swatch
from mlrl_learners.report.html import Html, scrolled, tag
from mlrl_learners.report.panels import AXES, EVERYTHING, Axis, Curves, draw_panels
from mlrl_learners.report.run_groups import mean_curves
from mlrl_learners.runs.files import EPISODES_FILE, METRICS_FILE

__all__ = ["View", "charts", "curves_page", "run_list", "run_state"]

Group: TypeAlias = Literal["", "seed", "learner"]
_GROUPS = {"": "each run", "seed": "mean over seeds", "learner": "mean over a learner's runs"}
_SMOOTHINGS = range(1, 101)
_SMOOTHING = 5
_MOST_AT_FIRST = 4
_MOST = 24
_AXES = {"iteration": "iterations", "tokens": "tokens", "seconds": "seconds"}
_HINT = (
    "Values appear here: point at a chart, tap it, or focus it and use ← →. "
    "Drag over a chart to zoom; click a line to single it out."
)


@dataclass(frozen=True)
class View:
    """Options of the page.

    Attributes:
        runs: Runs that are drawn.
        known: All runs, so that a group keeps its colour whichever of its runs are drawn.
        axis: Horizontal axis.
        smoothing: Window of the running mean, in iterations.
        group: Whether each run is drawn, or the mean of runs that differ by their seed, or of all
            runs of a learner.
        low: Left end of the horizontal axis; None for the first value.
        high: Right end of the horizontal axis; None for the last value.
        log: Whether vertical axes are logarithmic.
    """

    runs: Sequence[MonitoredRun]
    known: Sequence[MonitoredRun] = ()
    axis: Axis = "iteration"
    smoothing: int = _SMOOTHING
    group: Group = ""
    low: float | None = None
    high: float | None = None
    log: bool = False

    @classmethod
    def parse(
        cls, words: Mapping[str, str], names: Sequence[str], runs: Sequence[MonitoredRun]
    ) -> "View":
        """Parse a query; without a choice of runs it has those that were written last."""
        if "chosen" in words or names:
            wanted = set(names)
            shown = [run for run in runs if run.name in wanted][:_MOST]
        else:
            latest = sorted(runs, key=lambda run: (run.is_trained, run.written_at()), reverse=True)
            latest = [run for run in latest if run.is_trained or not latest[0].is_trained]
            shown = sorted(latest[:_MOST_AT_FIRST], key=lambda run: run.name)
        return cls(
            shown,
            runs,
            axis=next((one for one in AXES if one == words.get("axis")), "iteration"),
            smoothing=next(
                (n for n in _SMOOTHINGS if str(n) == words.get("smoothing")), _SMOOTHING
            ),
            group=next((one for one in get_args(Group) if one == words.get("group")), ""),
            low=number_or_none(words.get("from", "")),
            high=number_or_none(words.get("to", "")),
            log="log" in words,
        )

    def words(self) -> list[tuple[str, object]]:
        """Return the query that `parse` accepts."""
        found: list[tuple[str, object]] = [("chosen", 1)]
        found += [("run", run.name) for run in self.runs]
        found += [("axis", self.axis), ("smoothing", self.smoothing), ("group", self.group)]
        ends = [("from", self.low), ("to", self.high)]
        return found + [end for end in ends if end[1] is not None] + [("log", 1)] * self.log

    def curves(self) -> list[Curves]:
        """Return the curves of the runs or of their groups."""
        if not self.group:
            return [_curves(run) for run in self.runs]
        return [
            mean_curves(name, [_curves(run) for run in runs], color=color)
            for name, color, runs in self._groups()
        ]

    def lines(self) -> dict[str, tuple[str, int]]:
        """Return name of a run -> name and colour of its line."""
        if not self.group:
            return {run.name: (run.name, run.color) for run in self.runs}
        return {run.name: (name, color) for name, color, runs in self._groups() for run in runs}

    def _groups(self) -> list[tuple[str, int, list[MonitoredRun]]]:
        """Return name, colour and drawn runs of each group."""
        firsts = {key: runs[0].name for key, runs in self._by_key(self.known or self.runs).items()}
        colors = free_colors(firsts.values())
        named: dict[str, tuple[int, list[MonitoredRun]]] = {}
        for key, runs in self._by_key(self.runs).items():
            name = _group_name(runs)
            name = f"{name}, from {runs[0].name}" if name in named else name
            named[name] = (colors[firsts[key]], runs)
        return [(name, *rest) for name, rest in named.items()]

    def _by_key(self, runs: Sequence[MonitoredRun]) -> dict[object, list[MonitoredRun]]:
        found: dict[object, list[MonitoredRun]] = {}
        for run in runs:
            found.setdefault(_group_key(run, self.group), []).append(run)
        return found


def curves_page(view: View, runs: Sequence[MonitoredRun], root: str) -> str:
    """Return the page of curves; its script refreshes the charts and the list of runs."""
    if not runs:
        return frame("Curves", _nothing(root), here="curves")
    form = tag(
        "form",
        hidden([("chosen", 1)]),
        tag("h1", "Runs"),
        tag("input", type="search", placeholder="Find a run", aria_label="Find a run",
            id="find", data_search="", data_filter="#runs label", class_="enhanced"),
        tag("div", run_list(view, runs), id="runs", data_live=address("/runs", view.words())),
        id="view",
        method="get",
        action="/",
    )  # fmt: skip
    drawn = tag(
        "div",
        charts(view),
        id="charts",
        data_live=address("/charts", view.words()),
        aria_live="off",
    )
    only = view.runs[0].name if len(view.runs) == 1 else None
    side = tag("aside", form, class_="side")
    hint = tag("div", tag("p", _HINT, class_="quiet"), id="values", class_="values enhanced")
    body = tag("div", side, tag("div", _tools(view), hint, drawn), class_="with-side")
    return frame("Curves", body, run=only, here="curves")


def charts(view: View) -> list[Html]:
    """Draw the chosen runs."""
    if not view.runs:
        return [tag("p", "Choose a run on the list.", class_="empty")]
    curves = view.curves()
    if not any(len(one.x("iteration")) or one.held_out for one in curves):
        waiting = "No iteration is finished yet; the first one is drawn as soon as it is there."
        return [tag("p", waiting, class_="empty")]
    whole = EVERYTHING
    zoom = (
        whole[0] if view.low is None else view.low,
        whole[1] if view.high is None else view.high,
    )
    return draw_panels(curves, axis=view.axis, smoothing=view.smoothing, zoom=zoom, log=view.log)


def run_list(view: View, runs: Sequence[MonitoredRun]) -> list[Html]:
    """List the runs with their progress."""
    lines = view.lines()
    return [_run(run, number_of, lines.get(run.name)) for number_of, run in enumerate(runs)]


def run_state(run: MonitoredRun) -> str:
    """Return how far a run is, and whether it is still written."""
    if not run.is_trained:
        return "evaluated"
    last = run.metrics.last_row()
    done, planned = done_iterations(run), run.planned_iterations()
    parts = [f"{done} of {planned}" if planned else counted(done, "iteration")]
    if last is not None and "train/return" in last.metrics:
        parts.append(f"return {number(last.metrics['train/return'])}")
    state = state_of(run)
    if state == "running" or (planned and state != "finished"):
        parts.append(state)
    return " · ".join(parts)


def _run(run: MonitoredRun, number_of: int, line: tuple[str, int] | None) -> Html:
    """Return the row of a run; `line` has the name and the colour of its line in the charts."""
    box = tag("input", type="checkbox", name="run", value=run.name, id=f"run-{number_of}",
              checked="checked" if line else None)  # fmt: skip
    where = [("run", run.name)]
    listed = where if run.main_source == "training" else [*where, ("source", run.main_source)]
    name, color = line or (run.name, run.color)
    words = f"single out {name}"
    single = tag("button", "\u25ce", type="button", id=f"single-{number_of}", data_single=name,
                 title=words, aria_label=words, aria_pressed="false",
                 class_="enhanced")  # fmt: skip
    return tag(
        "div",
        tag("label", box, swatch(color), tag("span", run.name, class_="name")),
        single if line else None,
        tag("span", run_state(run), class_="quiet state"),
        tag(
            "span",
            tag("a", "episodes", href=address("/episodes", listed), id=f"episodes-{number_of}"),
            tag("a", "overview", href=address("/run", where), id=f"overview-{number_of}"),
            class_="links",
        ),
        class_="run",
        data_run=name,
    )


def _tools(view: View) -> Html:
    """Return the fields above the charts, which belong to the form of the runs."""
    slider = tag("input", type="range", name="smoothing", min=1, max=_SMOOTHINGS[-1],
                 value=view.smoothing, form="view", aria_label="Mean of iterations")  # fmt: skip
    mean = tag("span", "Mean of ", tag("output", str(view.smoothing), id="smoothing"))
    log = tag("input", type="checkbox", name="log", value=1, form="view",
              checked="checked" if view.log else None)  # fmt: skip
    ends = [
        tag("input", type="hidden", name=name, form="view", value="" if end is None else f"{end:g}")
        for name, end in (("from", view.low), ("to", view.high))
    ]
    is_whole = view.low is None and view.high is None
    return tag(
        "div",
        options("axis", "Over", [(one, _AXES[one]) for one in AXES], view.axis, form="view"),
        options("group", "Lines", list(_GROUPS.items()), view.group, form="view"),
        tag("label", mean, slider, class_="field"),
        tag("label", log, "log y", class_="check"),
        ends,
        tag("button", "Whole range", type="button", id="unzoom", class_="enhanced",
            hidden="hidden" if is_whole else None),
        tag("button", "Show", form="view", class_="plain-only"),
        class_="fields tools",
    )  # fmt: skip


def _curves(run: MonitoredRun) -> Curves:
    return replace(run.metrics.curves(), color=run.color)


def _group_key(run: MonitoredRun, group: Group) -> object:
    config = run.options()
    if group == "learner":
        return config.get("learner.name", run.name)
    kept = {n: v for n, v in config.items() if n != "train.seed" and not n.startswith("logging.")}
    return tuple(sorted(kept.items())) or run.name


def _group_name(runs: Sequence[MonitoredRun]) -> str:
    """Return what the names of runs begin with, and their number."""
    if len(runs) == 1:
        return runs[0].name
    common = os.path.commonprefix([run.name for run in runs])  # noqa: RUF071 - no path is meant
    common = common.rstrip("-_/. ").removesuffix("seed").rstrip("-_/. ")
    return f"{common or runs[0].options().get('learner.name', 'runs')}, mean of {len(runs)} runs"


def _nothing(root: str) -> Html:
    return tag(
        "div",
        tag("h1", "No runs yet"),
        tag("p", "Nothing below ", tag("code", root), " holds a ", tag("code", METRICS_FILE),
            " or ", tag("code", EPISODES_FILE), ". Start one, and reload this page:"),
        scrolled("pre", tag("code", "mlrl train tiny --run-dir runs/tiny")),
        class_="empty",
    )  # fmt: skip

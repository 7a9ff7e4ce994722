"""Sections of the report: headline figures, curves, evaluations, configuration."""

import math
from collections.abc import Sequence

import numpy as np

from mlrl_learners.report.chart_scales import counted, number
from mlrl_learners.report.configuration import draw_options, options_of
from mlrl_learners.report.html import Child, Html, scrolled, tag, without_overrides
from mlrl_learners.report.overview import Overview, command_of, draw_overview, tile
from mlrl_learners.report.panels import Curves, EvaluationPoint, draw_panels
from mlrl_learners.report.transcript_markup import Side, compare
from mlrl_learners.runs.evaluations import StoredEvaluation
from mlrl_learners.runs.files import CONFIG_FILE, ENVIRONMENT_FILE
from mlrl_learners.runs.stored import StoredEpisode
from mlrl_learners.runs.stored_run import StoredRun

__all__ = [
    "configuration",
    "curves",
    "evaluation_groups",
    "headline",
    "played",
    "training_samples",
    "unreadable_lines",
]

_SMOOTHING = 5


def evaluation_groups(run: StoredRun) -> list[list[StoredEvaluation]]:
    """Group evaluations by environment and split, the one evaluated most often first."""
    groups: dict[tuple[str, str], list[StoredEvaluation]] = {}
    for evaluation in run.evaluations:
        groups.setdefault((evaluation.env_id, evaluation.split), []).append(evaluation)
    for group in groups.values():
        group.sort(key=lambda evaluation: evaluation.iteration)
    return sorted(groups.values(), key=len, reverse=True)


def _result(evaluation: StoredEvaluation) -> Html:
    low, high = evaluation.interval
    name = " ".join(filter(None, ("mean return", evaluation.env_id, evaluation.split)))
    return tile(name, f"{number(evaluation.mean_return)} [{number(low)}, {number(high)}]")


def headline(run: StoredRun) -> Html:
    """Show what the run trains and its main figures; those of evaluations without a run."""
    groups = evaluation_groups(run)
    if groups and not (run.iterations or run.config):  # episodes of an evaluation or a suite
        return tag("div", [_result(group[0]) for group in groups], class_="tiles")
    options = options_of(run.config)
    if "env.id" not in options and run.evaluations:
        options["env.id"] = run.evaluations[0].env_id
    return draw_overview(Overview(_curves_of(run), options, command_of(run.environment)))


def curves(run: StoredRun) -> list[Html]:
    """Show the team return, its components and all metrics of the learner."""
    parts = draw_panels([_curves_of(run)], axis="iteration", smoothing=_SMOOTHING)
    if len(parts) > 2:
        note = f"Small charts: mean of {_SMOOTHING} iterations, for each agent or set of weights."
        parts.append(tag("p", note, class_="quiet"))
    return parts


def played(group: Sequence[StoredEvaluation], *, limit: int) -> Html:
    """Show the first and last evaluation of an environment: figures, then transcripts."""
    first, last = group[0], group[-1]
    split = f" · {last.split}" if last.split else ""
    sides = [
        Side(_moment(one), one.episodes) for one in ([first, last] if len(group) > 1 else [last])
    ]
    return tag(
        "section",
        tag("h2", f"{last.env_id}{split}"),
        _comparison(first, last) if len(group) > 1 else _single(last),
        tag("h3", "Transcripts, before and after" if len(group) > 1 else "Transcripts"),
        compare(sides, limit=limit),
    )


def training_samples(run: StoredRun) -> Html | None:
    """Show episodes of the first and the last training iteration."""
    if not run.first_episodes:
        return None
    sides = [Side("", run.first_episodes)]
    if run.last_episodes:
        sides.append(Side("", run.last_episodes))
    titles = ("First iteration", "Last iteration")
    blocks = [
        [tag("h3", title), compare([side], limit=3, open_first=0)]
        for title, side in zip(titles, sides, strict=False)
    ]
    return tag("section", tag("h2", "Samples from training"), blocks)


def configuration(run: StoredRun) -> Html:
    """Show configuration, versions and hardware, and the number of unreadable lines."""
    note = tag("p", f"{unreadable_lines(run)}.", class_="quiet") if run.unreadable else None
    options = options_of(run.config)
    files = {ENVIRONMENT_FILE: run.environment}
    if not options:
        files = {CONFIG_FILE: run.config, **files}
    shown = [
        tag("details", tag("summary", name), scrolled("pre", text), class_="reads")
        for name, text in files.items()
        if text
    ]
    if options:
        table = tag("details", tag("summary", CONFIG_FILE), draw_options(options), class_="reads")
        shown.insert(0, table)
    return tag("section", tag("h2", "Configuration and environment"), shown, note)


def unreadable_lines(run: StoredRun) -> str:
    """Return a sentence about the lines that were left out."""
    lines = "line" if run.unreadable == 1 else "lines"
    verb = "was" if run.unreadable == 1 else "were"
    return f"{run.unreadable} {lines} of the run's files could not be read and {verb} left out"


def _curves_of(run: StoredRun) -> Curves:
    rows = [
        {"iteration": one.iteration, "seconds": one.seconds, **one.metrics}
        for one in run.iterations
    ]
    names = {name for row in rows for name in row}
    columns = {name: np.array([row.get(name, math.nan) for row in rows]) for name in names}
    group = next(iter(evaluation_groups(run)), [])
    held_out = [EvaluationPoint(one.iteration, one.mean_return, *one.interval) for one in group]
    return Curves(run.name, columns, held_out)


def _comparison(first: StoredEvaluation, last: StoredEvaluation) -> Html:
    names = dict.fromkeys([*first.components, *last.components])
    before, after = _mean_lengths(first.episodes), _mean_lengths(last.episodes)
    rows = [
        _row("mean return", first.mean_return, last.mean_return, first.interval, last.interval),
        _row("solved, share", first.solved_rate, last.solved_rate),
        *(
            _row(name, first.components.get(name, 0), last.components.get(name, 0))
            for name in names
        ),
        *(_row(f"{agent}: characters", before.get(agent, 0), after[agent]) for agent in after),
    ]
    titles = (_moment(first), _moment(last), "ratio")
    heads = [tag("th", title, scope="col") for title in titles]
    head = tag("tr", tag("th", "figure", scope="col", class_="first"), heads)
    table = tag("table", tag("thead", head), tag("tbody", rows))
    return scrolled("div", table, tag("p", _provenance(last), class_="quiet"), class_="wide")


def _single(evaluation: StoredEvaluation) -> Html:
    figures = {"mean return": evaluation.mean_return, "solved, share": evaluation.solved_rate}
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", number(value)))
        for name, value in {**figures, **evaluation.components}.items()
    ]
    moment = tag("th", _moment(evaluation), scope="col")
    head = tag("tr", tag("th", "figure", scope="col", class_="first"), moment)
    table = tag("table", tag("thead", head), tag("tbody", rows))
    return scrolled("div", table, tag("p", _provenance(evaluation), class_="quiet"), class_="wide")


def _row(
    name: str,
    first: float,
    last: float,
    first_interval: tuple[float, float] | None = None,
    last_interval: tuple[float, float] | None = None,
) -> Html:
    ratio = f"{last / first:.2f}" if first > 0 else "-"
    cells: list[Child] = [
        _with_interval(first, first_interval),
        _with_interval(last, last_interval),
        ratio,
    ]
    return tag("tr", tag("th", name, scope="row"), [tag("td", cell) for cell in cells])


def _with_interval(value: float, interval: tuple[float, float] | None) -> list[Child]:
    if interval is None:
        return [number(value)]
    return [number(value), tag("small", f"{number(interval[0])} to {number(interval[1])}")]


def _mean_lengths(episodes: Sequence[StoredEpisode]) -> dict[str, float]:
    lengths: dict[str, list[int]] = {}
    for episode in episodes:
        for turn in episode.turns:
            for agent, text in turn.actions.items():
                if agent not in episode.opponents:
                    lengths.setdefault(agent, []).append(len(text))
    return {agent: sum(counts) / len(counts) for agent, counts in lengths.items()}


def _provenance(evaluation: StoredEvaluation) -> str:
    episodes, tasks = evaluation.episodes, len({e.task_id for e in evaluation.episodes})
    seed = "" if evaluation.seed is None else f", evaluation seed {evaluation.seed}"
    rivals = sorted({name for episode in episodes for name in episode.opponents.values()})
    against = f", against {without_overrides(', '.join(rivals))}" if rivals else ""
    played = f"{counted(len(episodes), 'episode')} over {counted(tasks, 'task')}"
    return f"{played}{seed}{against}."


def _moment(evaluation: StoredEvaluation) -> str:
    if evaluation.iteration == 0:
        return "before training"
    return f"after {counted(evaluation.iteration, 'iteration')}"

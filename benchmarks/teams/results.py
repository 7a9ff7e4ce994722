"""Figures of finished runs: learning, comparisons of teams with one agent, tables and a picture."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.shared.curves import grouped, save_figure
from benchmarks.shared.intervals import half_width, interval
from benchmarks.shared.kept_runs import check_same
from benchmarks.teams.comparisons import Comparison, Run, at_equal_time, compare
from benchmarks.teams.plans import METHODS, PAIRS, run_config
from benchmarks.teams.scripts import scripted_actions
from benchmarks.teams.tasks import TASKS, TeamTask
from benchmarks.teams.training import Job, run_folder
from mlrl_learners.config.yaml import parse_yaml
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import read_records
from mlrl_learners.runs.files import CONFIG_FILE, EVALUATIONS_FILE, METRICS_FILE

__all__ = [
    "comparison_table",
    "draw",
    "gather",
    "learning_table",
    "read_run",
    "reference_returns",
    "scripts_table",
    "verdict_table",
]

COLUMNS = 3  # of the picture
COLORS = ("#1b6ca8", "#3c8d5a", "#7a5ea8", "#c8553d", "#b8860b")


def gather(jobs: Iterable[Job], runs: Path) -> list[Run]:
    """Return the finished runs of a folder, and print which ones are left out, and why.

    Args:
        jobs: The runs to look for.
        runs: Folder with a folder for each task.
    """
    found = []
    for job in jobs:
        try:
            found.append(read_run(job, runs / job.task))
        except RunDirError as error:
            print(f"left out: {job.task}, {job.name}, seed {job.seed}: {error}")
    return found


def read_run(job: Job, runs: Path) -> Run:
    """Return the figures of a finished run.

    Args:
        job: The run.
        runs: Folder of all runs of the task.

    Raises:
        RunDirError: If it is not finished, was trained with another configuration, or episodes of
            its last evaluation failed.
    """
    task, folder = TASKS[job.task], run_folder(runs, job.name, job.seed)
    records: Any = read_records(folder / EVALUATIONS_FILE)
    evaluations: dict[int, Any] = {int(each["iteration"]): each for each in records}
    if task.updates not in evaluations:
        raise RunDirError("not finished")
    stored: Any = parse_yaml((folder / CONFIG_FILE).read_text("utf-8"), CONFIG_FILE)
    check_same(run_config(task, job.method, stored["learner"]["model"], job.seed), folder)
    returns = evaluations[task.updates]["task_returns"]
    if len(returns) != task.eval_tasks:
        raise RunDirError(f"{task.eval_tasks - len(returns)} held-out tasks have no return")
    metrics: list[Any] = list(read_records(folder / METRICS_FILE))
    return {
        "task": job.task,
        "method": job.name,
        "seed": job.seed,
        "tokens": sum(round(each["train/tokens"]) for each in metrics),
        "minutes": round(sum(each["seconds"] for each in metrics) / 60, 1),
        "failed_episodes": sum(round(each["train/failed_episodes"]) for each in metrics),
        "held_out": {at: round(each["mean_return"], 4) for at, each in evaluations.items()},
        "returns": [round(mean(each), 4) for each in returns.values()],
    }


def reference_returns(task: TeamTask) -> dict[str, float]:
    """Return the mean return of each script of a task, over its held-out tasks."""
    return {script: round(mean(list(_script(task, script))), 4) for script in task.references}


def _script(task: TeamTask, script: str) -> Iterator[float]:
    env: Any = mlrl_envs.make(task.env_id, split="eval", **task.env)
    for number in range(task.eval_tasks):
        env.reset(seed=number, options={"task_index": number})
        earned = 0.0
        while env.agents:
            place = 100 * number + len(env.turns)
            actions = scripted_actions(env, script, [place] * len(env.acting))
            earned += mean(list(env.step(actions)[1].values()))
        yield earned


def scripts_table(references: Mapping[str, Mapping[str, float]]) -> str:
    """Return the mean return of the scripts of each task as a Markdown table, highest first.

    Args:
        references: Task -> script -> mean return.
    """
    lines = ["| task | scripts |", "|---|---|"]
    for name, returns in references.items():
        scripts = sorted(returns.items(), key=lambda each: -each[1])
        lines.append(f"| {name} | {', '.join(f'`{one}` {value:.2f}' for one, value in scripts)} |")
    return "\n".join(lines)


def learning_table(runs: Sequence[Run]) -> str:
    """Return what each method learns as a Markdown table: means over seeds.

    The change has half of the 95 % interval of Student's t over seeds.
    """
    lines = [
        "| task | method | seeds | imitation → trained | change | by seed | tokens | minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, mine in grouped([dict(each) for each in runs], "task").items():
        for method, found in grouped(mine, "method").items():
            before, after = zip(*(_ends(each) for each in found), strict=True)
            changes = [last - first for first, last in zip(before, after, strict=True)]
            lines.append(
                f"| {name} | {METHODS[method].label} | {len(found)} "
                f"| {mean(before):.2f} → {mean(after):.2f} "
                f"| {interval(mean(changes), half_width(changes))} "
                f"| {', '.join(f'{value:.2f}' for value in after)} "
                f"| {mean([each['tokens'] for each in found]):,.0f} "
                f"| {mean([each['minutes'] for each in found]):.1f} |"
            )
    return "\n".join(lines)


def comparison_table(runs: Sequence[Run]) -> str:
    """Return trained teams beside one trained agent as a Markdown table.

    Differences have an interval of Student's t over seeds. Their bootstrap interval and permutation
    test are paired over held-out tasks, each the mean over the seeds that both have: they hold for
    these trained models, and not for other seeds.
    """
    columns = (
        *("task", "pair", "team", "one agent", "over seeds", "by seed", "over tasks", "p"),
        *("P(better)", "time"),
    )
    lines = [f"| {' | '.join(columns)} |", f"{'|---' * len(columns)}|"]
    for name in dict.fromkeys(each["task"] for each in runs):
        for team, one in PAIRS:
            found = compare(runs, name, team, one)
            if found is not None:
                timed = at_equal_time(runs, name, team, one)
                lines.append(
                    f"| {name} | `{team}`, `{one}` | {found.ours:.2f} | {found.theirs:.2f} "
                    f"| {found.over_seeds} | {found.seeds} | {found.over_tasks} "
                    f"| {found.p:.4f} | {found.probability:.2f} "
                    f"| {interval(mean(timed), half_width(timed))} |"
                )
    return "\n".join(lines)


def verdict_table(runs: Sequence[Run]) -> str:
    """Return who earns more on each task as a Markdown table, one column for each pair of methods.

    A pair decides if the interval of its difference over seeds excludes 0; it is in bold.
    """
    columns = *(f"`{team}` - `{one}`" for team, one in PAIRS), "who earns more"
    lines = [f"| task | {' | '.join(columns)} |", f"|---{'|---' * len(columns)}|"]
    for name in dict.fromkeys(each["task"] for each in runs):
        found = [compare(runs, name, team, one) for team, one in PAIRS]
        if any(found):
            cells = [_difference(each) for each in found]
            signs = {each.sign for each in found if each is not None} - {0}
            lines.append(f"| {name} | {' | '.join(cells)} | {_verdict(signs)} |")
    return "\n".join(lines)


def _difference(found: Comparison | None) -> str:
    """Return the difference of a pair over seeds, in bold if its interval excludes 0."""
    if found is None:
        return ""
    return f"**{found.over_seeds}**" if found.sign else found.over_seeds


def _verdict(signs: set[int]) -> str:
    """Return who earns more, given the signs of the differences that exclude 0."""
    if len(signs) == 1:
        return "the team" if 1 in signs else "one agent"
    return "not shown" if not signs else "depends on the method"


def _ends(run: Run) -> tuple[float, float]:
    held_out = {int(at): value for at, value in run["held_out"].items()}
    return held_out[0], held_out[max(held_out)]


def _labels(references: Mapping[str, float], apart: float = 0.035) -> list[tuple[float, str]]:
    """Return the place and the text of each label; scripts that earn nearly the same share one."""
    labels: list[tuple[float, str]] = []
    for script, value in sorted(references.items(), key=lambda each: each[1]):
        if labels and value - labels[-1][0] < apart:
            labels[-1] = value, f"{labels[-1][1]}, {script}"
        else:
            labels.append((value, script))
    return labels


def draw(runs: Sequence[Run], references: Mapping[str, Mapping[str, float]], picture: Path) -> None:
    """Draw held-out returns over updates: mean over seeds, with a band from minimum to maximum."""
    from matplotlib.figure import Figure

    tasks = grouped([dict(each) for each in runs], "task")
    columns = min(COLUMNS, len(tasks))
    rows = math.ceil(len(tasks) / columns)
    figure = Figure(figsize=(max(4.2, 3.8 * columns), 0.6 + 2.8 * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in panels[len(tasks) :]:
        unused.set_axis_off()
    for axes, (name, mine) in zip(panels, tasks.items(), strict=False):
        for method, found in grouped(mine, "method").items():
            curves = [{int(at): value for at, value in e["held_out"].items()} for e in found]
            updates = sorted(curves[0])
            values = [[curve[at] for curve in curves] for at in updates]
            color = COLORS[list(METHODS).index(method)]
            low, high = ([pick(each) for each in values] for pick in (min, max))
            axes.fill_between(updates, low, high, color=color, alpha=0.15, linewidth=0)
            style = "-" if METHODS[method].is_team else "--"
            label = METHODS[method].label.replace("`", "")
            axes.plot(updates, [mean(each) for each in values], style, color=color, label=label)
        for value in references[name].values():
            axes.axhline(value, color="0.5", linewidth=0.8, linestyle=":")
        for value, scripts in _labels(references[name]):
            axes.annotate(scripts, (1, value), xycoords=("axes fraction", "data"), fontsize=7,
                          color="0.35", ha="right", va="bottom")  # fmt: skip
        axes.set_title(name, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    lines: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        lines |= dict(zip(labels, handles, strict=True))
    figure.legend(list(lines.values()), list(lines), loc="outside upper center",
                  ncols=len(lines), frameon=False, fontsize=8)  # fmt: skip
    figure.supxlabel("updates after imitation", fontsize=10)
    figure.supylabel("held-out return", fontsize=10)
    save_figure(figure, picture)

"""Figures of finished runs: learning, comparisons of teams with one agent, tables and a picture."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.curves import grouped
from benchmarks.recipes import half_width, interval
from benchmarks.teams.comparisons import Run, compare
from benchmarks.teams.plans import METHODS, PAIRS
from benchmarks.teams.scripts import scripted_actions
from benchmarks.teams.tasks import TASKS, TeamTask
from benchmarks.teams.training import run_folder
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile

__all__ = ["comparison_table", "draw", "learning_table", "read_run", "reference_returns"]

COLUMNS = 3  # of the picture
COLORS = ("#1b6ca8", "#3c8d5a", "#7a5ea8", "#c8553d", "#b8860b")


def read_run(name: str, method: str, seed: int, runs: Path) -> dict[str, Any] | None:
    """Return the figures of a run; None if it is not finished.

    Args:
        name: Name of the task.
        method: Name of the method.
        seed: Its seed.
        runs: Folder of all runs of the task.
    """
    folder, last = run_folder(runs, method, seed), TASKS[name].updates
    evaluations: dict[int, Any] = {}
    if (folder / "evaluations.jsonl").exists():
        records = JsonlFile(folder / "evaluations.jsonl").records()
        evaluations = {int(str(each["iteration"])): each for each in records}
    if last not in evaluations:
        return None
    metrics = list(JsonlFile(folder / "metrics.jsonl").records())
    seconds = sum(float(str(each["seconds"])) for each in metrics)
    return {
        "task": name,
        "method": method,
        "seed": seed,
        "tokens": sum(round(float(str(each["train/tokens"]))) for each in metrics),
        "minutes": round(seconds / 60, 1),
        "held_out": {at: round(float(e["mean_return"]), 4) for at, e in evaluations.items()},
        "returns": [round(mean(each), 4) for each in evaluations[last]["task_returns"].values()],
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


def learning_table(runs: Sequence[Run], references: Mapping[str, Mapping[str, float]]) -> str:
    """Return what each method learns as a Markdown table: means over seeds.

    The change has half of the 95 % interval of Student's t over seeds.
    """
    lines = [
        "| task | method | seeds | imitation → trained | change | by seed | tokens | minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, mine in grouped([dict(each) for each in runs], "task").items():
        scripts = ", ".join(f"`{script}` {value:.2f}" for script, value in references[name].items())
        for method, found in grouped(mine, "method").items():
            before, after = zip(*(_ends(each) for each in found), strict=True)
            changes = [last - first for first, last in zip(before, after, strict=True)]
            lines.append(
                f"| {name} ({scripts}) | {METHODS[method].label} | {len(found)} "
                f"| {mean(before):.2f} → {mean(after):.2f} "
                f"| {interval(mean(changes), half_width(changes))} "
                f"| {', '.join(f'{value:.2f}' for value in after)} "
                f"| {mean([each['tokens'] for each in found]):,.0f} "
                f"| {mean([each['minutes'] for each in found]):.1f} |"
            )
    return "\n".join(lines)


def comparison_table(runs: Sequence[Run]) -> str:
    """Return trained teams beside one trained agent as a Markdown table.

    Differences, their bootstrap intervals and the permutation test are paired over held-out tasks,
    each the mean over the seeds that both have.
    """
    lines = [
        "| task | pair | team | one agent | difference [95 %] | by seed | P(team better) | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(each["task"] for each in runs):
        for team, one in PAIRS:
            found = compare(runs, name, team, one)
            if found is not None:
                lines.append(
                    f"| {name} | `{team}`, `{one}` | {found.ours:.2f} | {found.theirs:.2f} "
                    f"| {found.difference} | {found.seeds} | {found.probability:.2f} "
                    f"| {found.p:.4f} |"
                )
    return "\n".join(lines)


def _ends(run: Run) -> tuple[float, float]:
    held_out = {int(at): value for at, value in run["held_out"].items()}
    return held_out[0], held_out[max(held_out)]


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
        shown = {script: round(value, 2) for script, value in references[name].items()}
        for value in sorted(set(shown.values())):
            scripts = ", ".join(script for script, each in shown.items() if each == value)
            axes.axhline(value, color="0.5", linewidth=0.8, linestyle=":")
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
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Date": None})

"""Learning curves of four methods on the story environment, with three seeds and equal samples.

    python -m benchmarks.learning.stories [--runs runs/curves] [--gather-only]

Two copies of SmolLM2-135M-Instruct write stories, 288 answers per run. Every method takes one
optimizer step per iteration on the same tasks in the same order. Interrupted runs are resumed. The
script writes `benchmarks/learning/stories.json` and `docs/images/curves_stories.svg`, and prints a
table. It takes about two hours on two cores.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared import curves
from benchmarks.shared.curves import Curve
from benchmarks.shared.kept_runs import finish_all
from mlrl_learners.config.run import RunConfig, load_config
from mlrl_learners.figures.means import mean

__all__ = ["draw", "main", "run_config", "table"]

PRESETS: Mapping[str, tuple[str, ...]] = {
    "magrpo": ("story",),
    "marloo": ("story", "--learner.name", "marloo"),
    # A value head on the actor, because separate critics would double the memory.
    "ippo": ("ippo", "--learner.critic.kind", "value_head", "--learner.optimizer.epochs", "1"),
    "mappo": ("mappo", "--learner.optimizer.epochs", "1"),
}
ITERATIONS, TASKS, LR = 12, 2, 1e-4
ANSWERS = TASKS * 6 * 2  # per iteration: tasks, group size, agents
COLORS = {"magrpo": "#1b6ca8", "marloo": "#c8553d", "ippo": "#3c8d5a", "mappo": "#7a5ea8"}

KEY = "method"


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, gather and draw the curves, and print the table."""
    description = "Learning curves of four methods."
    arguments = curves.parse(argv, description, "stories", "runs/curves")
    runs = [
        (method, seed, arguments.runs / f"{method}-{seed}", run_config(method, seed))
        for seed in arguments.seeds
        for method in PRESETS
    ]
    if not arguments.gather_only and not finish_all((config, at) for _, _, at, config in runs):
        return 130
    found = curves.gather_all(runs, KEY)
    whole = curves.report(found, arguments, _work(), key=KEY, groups=PRESETS, draw=draw)
    if whole:
        print(table(whole))
    return 0 if whole and len(found) == len(runs) else 1


def run_config(method: str, seed: int) -> RunConfig:
    """Return the configuration of a run.

    Args:
        method: A name of `PRESETS`.
        seed: Seed of the task order and of all sampling.
    """
    preset, *words = PRESETS[method]
    settings = {
        "learner.optimizer.lr": LR,
        "train.iterations": ITERATIONS,
        "train.tasks_per_iteration": TASKS,
        "train.seed": seed,
        "train.eval_every": ITERATIONS,
        "train.eval_samples": 2,
        "train.checkpoint_every": ITERATIONS,
        "train.keep_checkpoints": 1,
    }
    for name, value in settings.items():
        words += [f"--{name}", str(value)]
    return load_config(preset, words)


def table(found: Sequence[Curve]) -> str:
    """Return a Markdown table with one row per method: mean over seeds, minimum and maximum."""
    return curves.table(found, KEY, {method: f"`{method}`" for method in PRESETS}, ITERATIONS)


def draw(found: Sequence[Curve], picture: Path) -> None:
    """Draw returns over sampled answers: mean over seeds, with a band from minimum to maximum."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    grouped = curves.grouped(found, KEY)
    panels = figure.subplots(1, len(grouped), sharey=True, squeeze=False)[0]
    for axes, (method, mine) in zip(panels, grouped.items(), strict=True):
        smooth = [_smooth(curve["returns"]) for curve in mine]
        answers = [ANSWERS * (number + 1) for number in range(len(smooth[0]))]
        columns = list(zip(*smooth, strict=True))
        color = COLORS[method]
        axes.fill_between(answers, *_bounds(columns), color=color, alpha=0.2, linewidth=0)
        axes.plot(answers, [mean(c) for c in columns], color=color, label="training, 3 iterations")
        curves.draw_held_out(axes, mine, "held-out prompts, a seed", scale=ANSWERS)
        axes.set_title(f"{method}, {len(mine)} seeds", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
    panels[0].set_ylim(0, 1)
    panels[0].set_ylabel("team return")
    figure.supxlabel("answers sampled", fontsize=10)
    curves.save_figure(figure, picture)


def _work() -> dict[str, Any]:
    return {
        "env": "mlrl/story-v1",
        "model": "smollm2-135m-instruct",
        "presets": {method: list(words) for method, words in PRESETS.items()},
        "iterations": ITERATIONS,
        "tasks_per_iteration": TASKS,
        "answers_an_iteration": ANSWERS,
        "lr": LR,
        "held_out": "10 prompts, 2 sampled episodes each",
    }


def _smooth(values: Sequence[float], window: int = 3) -> list[float]:
    """Return the running mean over the last values."""
    return [mean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]


def _bounds(columns: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [min(column) for column in columns], [max(column) for column in columns]


if __name__ == "__main__":
    sys.exit(main())

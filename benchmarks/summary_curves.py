"""Learning curves of `magrpo` on summaries of posts and papers, with three seeds.

    python -m benchmarks.summary_curves [--envs tldr arxiv] [--runs runs/summaries] [--gather-only]

Two copies of SmolLM2-135M-Instruct write a short and a long text at once and learn from the
grounded reward: 20 updates of 4 tasks with 6 answers of each agent, whose 36 pairs are scored.
Interrupted runs are resumed. The script writes `benchmarks/summary_curves.json` and
`docs/images/summary_curves.svg`, and prints a table. A run takes about 50 minutes on one core.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import curves
from benchmarks.curves import Curve
from benchmarks.kept_runs import finish
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig
from mlrl_learners.figures.means import mean

__all__ = ["draw", "main", "run_config"]

ENVS: Mapping[str, str] = {"tldr": "mlrl/tldr-v1", "arxiv": "mlrl/arxiv-v1"}
MODEL = "smollm2-135m-instruct"
OPTIONS: Mapping[str, Any] = {
    "group": {"size": 6, "joint_mode": "cross"},
    "loss": {"kind": "dr_grpo"},
    "sampling": {"max_new_tokens": 160, "temperature": 0.8, "top_p": 0.95},
    "optimizer": {"lr": 8e-5},
    "compute": {"precision": "bf16"},
}
ITERATIONS, TASKS, EVAL_TASKS = 20, 4, 42
COLOR = "#1b6ca8"
KEY = "env"


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, gather and draw the curves, and print the table."""
    description = "Learning curves on summaries."
    arguments = curves.parse(argv, description, "summary_curves", "runs/summaries", groups=ENVS)
    runs = [
        (env, seed, arguments.runs / f"{env}-{seed}", run_config(env, seed))
        for env in arguments.groups
        for seed in arguments.seeds
    ]
    if not arguments.gather_only:
        for _, _, run_dir, config in runs:
            if not finish(config, run_dir):
                print("interrupted: the same command continues", file=sys.stderr)
                return 130
    found = curves.gather_all(runs, KEY)
    whole = curves.report(found, arguments, _work(), key=KEY, groups=ENVS, draw=draw)
    if whole:
        print(curves.table(whole, KEY, ENVS, ITERATIONS))
    return 0 if whole and len(found) == len(runs) else 1


def run_config(env: str, seed: int) -> RunConfig:
    """Return the configuration of a run.

    Args:
        env: A name of `ENVS`.
        seed: Seed of the task order and of all sampling.
    """
    train = TrainConfig(
        iterations=ITERATIONS,
        tasks_per_iteration=TASKS,
        seed=seed,
        checkpoint_every=5,
        keep_checkpoints=1,
        eval_every=ITERATIONS,
        eval_tasks=EVAL_TASKS,
        eval_samples=1,
    )
    options = {"split": "train", "reward": "grounded"}
    learner = LearnerConfig("magrpo", MODEL, dict(OPTIONS))
    return RunConfig(EnvConfig(ENVS[env], options), learner, train=train)


def draw(found: Sequence[Curve], picture: Path) -> None:
    """Draw returns over updates, one panel per environment: a line for each seed."""
    from matplotlib.figure import Figure

    grouped = curves.grouped(found, KEY)
    figure = Figure(figsize=(3 + 3.2 * len(grouped), 3.2), layout="constrained")
    panels = figure.subplots(1, len(grouped), sharey=True, squeeze=False)[0]
    for axes, (env, mine) in zip(panels, grouped.items(), strict=True):
        columns = list(zip(*(curve["returns"] for curve in mine), strict=True))
        steps = [number + 1 for number in range(len(columns))]
        for curve in mine:
            axes.plot(steps, curve["returns"], color=COLOR, alpha=0.35, linewidth=1)
        axes.plot(steps, [mean(c) for c in columns], color=COLOR, label="training, mean of seeds")
        curves.draw_held_out(axes, mine, "held-out tasks, a seed")
        axes.set_title(f"{ENVS[env]}, seeds: {len(mine)}", fontsize=10)
        axes.set_xticks(range(0, ITERATIONS + 1, 5))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    panels[0].set_ylim(0, 1)
    panels[0].set_ylabel("return, grounded")
    figure.supxlabel("updates", fontsize=10)
    curves.save_figure(figure, picture)


def _work() -> dict[str, Any]:
    return {
        "envs": dict(ENVS),
        "reward": "grounded",
        "model": MODEL,
        "options": dict(OPTIONS),
        "iterations": ITERATIONS,
        "tasks_per_iteration": TASKS,
        "held_out": f"{EVAL_TASKS} tasks, 1 sampled episode each",
    }


if __name__ == "__main__":
    sys.exit(main())

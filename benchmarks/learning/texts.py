"""Learning curves of `magrpo` on summaries of posts, on papers and on debates, with three seeds.

    python -m benchmarks.learning.texts [--envs tldr tldr-facts arxiv arxiv-checked debate
        debate-topic] [--runs runs/text] [--gather-only]

Two copies of SmolLM2-135M-Instruct learn, one for each agent. Writers of a short and a long text
answer at once: 20 updates of 4 tasks with 6 answers of each agent, whose 36 pairs are scored.
Debaters argue twice and read each other in between: 20 updates of 6 propositions with 8 debates.
Interrupted runs are resumed. The script writes `benchmarks/learning/texts.json` and
`docs/images/curves_texts.svg`, and prints a table. A run of TLDR takes about an hour on one core,
and three minutes on an H200 that it shares with seven others.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.shared import curves
from benchmarks.shared.curves import Curve
from benchmarks.shared.kept_runs import finish_all
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig
from mlrl_learners.figures.means import mean

__all__ = ["TASKS", "TextTask", "draw", "main", "run_config"]

MODEL = "smollm2-135m-instruct"
OPTIONS: Mapping[str, Any] = {
    "loss": {"kind": "dr_grpo"},
    "sampling": {"max_new_tokens": 160, "temperature": 0.8, "top_p": 0.95},
    "optimizer": {"lr": 8e-5},
    "compute": {"precision": "bf16"},
}
PAIRS: Mapping[str, Any] = {"group": {"size": 6, "joint_mode": "cross"}}
# Texts of arXiv need 110 and 130 words for full marks, more than 160 tokens.
LONG_PAIRS = merge_options(PAIRS, {"sampling": {"max_new_tokens": 320}})
ITERATIONS, EVAL_TASKS = 20, 42
COLOR = "#1b6ca8"
KEY = "env"


@dataclass(frozen=True)
class TextTask:
    """A task, and how it is learnt.

    Attributes:
        env_id: The environment.
        env: Its options, without the split.
        options: Options of the learner besides `OPTIONS`.
        tasks_per_iteration: Tasks of an update.
    """

    env_id: str
    env: Mapping[str, Any]
    options: Mapping[str, Any]
    tasks_per_iteration: int = 4


DEBATES: Mapping[str, Any] = {
    "group": {"size": 1, "rollouts": 8},
    "baseline": {"group_by": "agent_turn"},
    "credit": {"gamma": 1.0},
}
TASKS: Mapping[str, TextTask] = {
    "tldr": TextTask("mlrl/tldr-v1", {"reward": "grounded"}, PAIRS),
    "tldr-facts": TextTask("mlrl/tldr-v1", {"reward": "grounded", "facts": True}, PAIRS),
    "arxiv": TextTask("mlrl/arxiv-v1", {"reward": "judged"}, LONG_PAIRS),
    "arxiv-checked": TextTask(
        "mlrl/arxiv-v1",
        {"reward": "grounded", "facts": True, "assignment": True},
        LONG_PAIRS,
    ),
    "debate": TextTask("mlrl/debate-v1", {"reward": "judged", "max_turns": 2}, DEBATES, 6),
    "debate-topic": TextTask(
        "mlrl/debate-v1",
        {"reward": "judged", "max_turns": 2, "vocabulary": "topic"},
        DEBATES,
        tasks_per_iteration=6,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, gather and draw the curves, and print the table."""
    description = "Learning curves on texts."
    arguments = curves.parse(argv, description, "texts", "runs/text", groups=TASKS)
    runs = [
        (name, seed, arguments.runs / f"{name}-{seed}", run_config(name, seed))
        for name in arguments.groups
        for seed in arguments.seeds
    ]
    if not arguments.gather_only and not finish_all((config, at) for _, _, at, config in runs):
        return 130
    found = curves.gather_all(runs, KEY)
    whole = curves.report(found, arguments, _work(), key=KEY, groups=TASKS, draw=draw)
    if whole:
        print(curves.table(whole, KEY, {}, ITERATIONS))
    return 0 if whole and len(found) == len(runs) else 1


def run_config(name: str, seed: int) -> RunConfig:
    """Return the configuration of a run.

    Args:
        name: A name of `TASKS`.
        seed: Seed of the task order and of all sampling.
    """
    task = TASKS[name]
    train = TrainConfig(
        iterations=ITERATIONS,
        tasks_per_iteration=task.tasks_per_iteration,
        seed=seed,
        checkpoint_every=5,
        keep_checkpoints=1,
        eval_every=ITERATIONS,
        eval_tasks=EVAL_TASKS,
        eval_samples=1,
    )
    learner = LearnerConfig("magrpo", MODEL, merge_options(OPTIONS, task.options))
    env = EnvConfig(task.env_id, {"split": "train", **task.env})
    return RunConfig(env, learner, train=train)


def draw(found: Sequence[Curve], picture: Path) -> None:
    """Draw returns over updates, one panel per environment: a line for each seed."""
    from matplotlib.figure import Figure

    grouped = curves.grouped(found, KEY)
    figure = Figure(figsize=(1.2 + 2.6 * len(grouped), 3.4), layout="constrained")
    panels = figure.subplots(1, len(grouped), squeeze=False)[0]
    for axes, (name, mine) in zip(panels, grouped.items(), strict=True):
        columns = list(zip(*(curve["returns"] for curve in mine), strict=True))
        steps = [number + 1 for number in range(len(columns))]
        for curve in mine:
            axes.plot(steps, curve["returns"], color=COLOR, alpha=0.35, linewidth=1)
        axes.plot(steps, [mean(c) for c in columns], color=COLOR, label="training, mean of seeds")
        curves.draw_held_out(axes, mine, "held-out tasks, a seed")
        env = TASKS[name].env
        axes.set_title(f"{name}, {env['reward']}, seeds: {len(mine)}", fontsize=10)
        axes.set_ylim(0, env.get("max_turns", 1))
        axes.set_xticks(range(0, ITERATIONS + 1, 5))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("return")
    figure.supxlabel("updates", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    curves.save_figure(figure, picture)


def _work() -> dict[str, Any]:
    return {
        "tasks": {name: asdict(task) for name, task in TASKS.items()},
        "model": MODEL,
        "options": dict(OPTIONS),
        "iterations": ITERATIONS,
        "held_out": f"{EVAL_TASKS} tasks, 1 sampled episode each",
    }


if __name__ == "__main__":
    sys.exit(main())

"""Learning curves of `magrpo` on two-turn trees of arithmetic problems, with three seeds.

    python -m benchmarks.learning.arithmetic [--runs runs/math] [--gather-only]

A solver and a verifier share the weights of SmolLM2-135M-Instruct, which is first trained by `sft`
on reference solutions and then by `magrpo` on trees with 3 answers per prompt and 2 turns. The two
settings are `turn_weights: reach`, and `turn_weights: nodes` with log-probabilities of the whole
vocabulary, the default before. Interrupted runs are resumed. The script writes
`benchmarks/learning/arithmetic.json` and `docs/images/curves_arithmetic.svg`, and prints a table.
It takes several hours on two cores.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared import curves
from benchmarks.shared.curves import Curve
from benchmarks.shared.kept_runs import finish, keep_same, shared_weights
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig
from mlrl_learners.figures.means import mean

__all__ = ["draw", "main", "run_config"]

ENV_ID = "mlrl/math-v2"
MODEL = "smollm2-135m-instruct"
ENV: Mapping[str, Any] = {
    "max_turns": 2,
    "feedback": "diagnostics",
    "topics": ["arithmetic"],
    "levels": [1],
}
VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "reach": {},
    "nodes": {"credit": {"turn_weights": "nodes"}, "sampling": {"renormalize": False}},
}
SHARED: Mapping[str, Mapping[str, Any]] = {
    "team": {"share_weights": True},
    "sampling": {"max_new_tokens": 48},
    "compute": {"precision": "bf16"},
}
ITERATIONS, TASKS, SFT_ITERATIONS, DEMONSTRATIONS = 10, 4, 30, 240
COLORS = {"reach": "#1b6ca8", "nodes": "#c8553d"}
LABELS = {"reach": "turn_weights: reach", "nodes": "turn_weights: nodes, as before"}

KEY = "rows"


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, gather and draw the curves, and print the table."""
    description = "Learning curves of trees of two turns."
    arguments = curves.parse(argv, description, "arithmetic", "runs/math")
    asked = [(variant, seed) for seed in arguments.seeds for variant in VARIANTS]
    if not arguments.gather_only:
        model = _imitate(arguments.runs)
        if model is None or not all(
            finish(run_config(variant, seed, str(model)), arguments.runs / f"{variant}-{seed}")
            for variant, seed in asked
        ):
            print("interrupted: the same command continues", file=sys.stderr)
            return 130
    runs = [_planned(variant, seed, arguments.runs) for variant, seed in asked]
    found = curves.gather_all(runs, KEY)
    whole = curves.report(found, arguments, _work(), key=KEY, groups=VARIANTS, draw=draw)
    if whole:
        print(curves.table(whole, KEY, LABELS, ITERATIONS))
    return 0 if whole and len(found) == len(runs) else 1


def run_config(variant: str, seed: int, model: str) -> RunConfig:
    """Return the configuration of a run.

    Args:
        variant: A name of `VARIANTS`.
        seed: Seed of the task order and of all sampling.
        model: Folder of the weights that imitation left.
    """
    options = {
        "group": {"size": 3, "joint_mode": "aligned", "branching": "tree"},
        "loss": {"kind": "dr_grpo"}, **SHARED, "optimizer": {"lr": 2e-5},
    }  # fmt: skip
    train = TrainConfig(
        iterations=ITERATIONS,
        tasks_per_iteration=TASKS,
        seed=seed,
        checkpoint_every=ITERATIONS,
        keep_checkpoints=1,
        eval_every=ITERATIONS,
        eval_tasks=32,
    )
    learner = LearnerConfig("magrpo", model, merge_options(options, VARIANTS[variant]))
    return RunConfig(EnvConfig(ENV_ID, {"split": "train", **ENV}), learner, train=train)


def draw(found: Sequence[Curve], picture: Path) -> None:
    """Draw returns over iterations: mean over seeds, with a band from minimum to maximum."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for variant, mine in curves.grouped(found, KEY).items():
        columns = list(zip(*(curve["returns"] for curve in mine), strict=True))
        steps = [number + 1 for number in range(len(columns))]
        color = COLORS[variant]
        least, most = [min(c) for c in columns], [max(c) for c in columns]
        axes.fill_between(steps, least, most, color=color, alpha=0.2, linewidth=0)
        axes.plot(steps, [mean(c) for c in columns], color=color, label=LABELS[variant])
        for curve in mine:
            axes.plot(
                list(curve["held_out"]), list(curve["held_out"].values()), "o:", color=color, ms=4
            )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("iteration (dots: held-out problems, a seed)")
    axes.set_ylabel("return of two turns")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    curves.save_figure(figure, picture)


def _planned(variant: str, seed: int, runs: Path) -> curves.Planned:
    run_dir = runs / f"{variant}-{seed}"
    model = curves.stored_model(run_dir) or MODEL
    return variant, seed, run_dir, run_config(variant, seed, model)


def _imitate(runs: Path) -> Path | None:
    """Train on reference solutions and return the folder of the weights; None if interrupted."""
    runs.mkdir(parents=True, exist_ok=True)
    file, run_dir = runs / "references.jsonl", runs / "sft"
    keep_same(runs / "made.json", {"env": ENV_ID, "options": ENV, "tasks": DEMONSTRATIONS})
    if not file.exists():
        env = [word for key, value in ENV.items() for word in (f"--env.{key}", json.dumps(value))]
        partial = file.with_suffix(".partial")
        words = ["--actor", "reference", "--tasks", str(DEMONSTRATIONS), "--resume"]
        words += ["--out", str(partial)]
        subprocess.run(
            [sys.executable, "-m", "mlrl_learners", "collect", ENV_ID, *words, *env], check=True
        )
        partial.rename(file)
    examples = {"examples": {"episodes": str(file), "batch_size": 8, "filter_reward": None}}
    learner = LearnerConfig("sft", MODEL, {**examples, **SHARED, "optimizer": {"lr": 5e-5}})
    train = TrainConfig(SFT_ITERATIONS, checkpoint_every=SFT_ITERATIONS, keep_checkpoints=1)
    env_config = EnvConfig(ENV_ID, {"split": "train", **ENV})
    if not finish(RunConfig(env_config, learner, train=train), run_dir):
        return None
    return shared_weights(run_dir, SFT_ITERATIONS)


def _work() -> dict[str, Any]:
    return {
        "env": ENV_ID,
        "env_options": dict(ENV),
        "model": MODEL,
        "imitation": f"{DEMONSTRATIONS} references, {SFT_ITERATIONS} steps of 8 answers",
        "iterations": ITERATIONS,
        "tasks_per_iteration": TASKS,
        "variants": {name: dict(options) for name, options in VARIANTS.items()},
        "held_out": "32 problems, 1 sampled episode each",
    }


if __name__ == "__main__":
    sys.exit(main())

"""Learning curves of `magrpo` on two-turn trees of arithmetic problems, with three seeds.

    python -m benchmarks.math_curves [--runs runs/math] [--gather-only]

A solver and a verifier share the weights of SmolLM2-135M-Instruct, which is first trained by `sft`
on reference solutions and then by `magrpo` on trees with 3 answers per prompt and 2 turns. The two
settings are `turn_weights: reach`, and `turn_weights: nodes` with log-probabilities of the whole
vocabulary, the default before. Interrupted runs are resumed. The script writes
`benchmarks/math_curves.json` and `docs/images/math_curves.svg`, and prints a table. It takes
several hours on two cores.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import curves
from benchmarks.curves import Curve
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.figures.means import mean

__all__ = ["draw", "main"]

ENV_ID = "mlrl/math-v1"
ENV = {"max_turns": "2", "feedback": "diagnostics", "topics": "[arithmetic]", "levels": "[1]"}
VARIANTS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "reach": {},
    "nodes": {"credit": {"turn_weights": "nodes"}, "sampling": {"renormalize": "false"}},
}
SHARED: Mapping[str, Mapping[str, str]] = {
    "team": {"share_weights": "true"},
    "sampling": {"max_new_tokens": "48"},
    "compute": {"precision": "bf16"},
}
ITERATIONS, TASKS, SFT_ITERATIONS, DEMONSTRATIONS = 10, 4, 30, 240
COLORS = {"reach": "#1b6ca8", "nodes": "#c8553d"}
LABELS = {"reach": "turn_weights: reach", "nodes": "turn_weights: nodes, as before"}

KEY = "rows"


def main(argv: Sequence[str] | None = None) -> int:
    """Train the missing runs, gather and draw the curves, and print the table."""
    description = "Learning curves of trees of two turns."
    arguments = curves.parse(argv, description, "math_curves", "runs/math")
    runs = [(variant, seed) for seed in arguments.seeds for variant in VARIANTS]
    if not arguments.gather_only:
        model = _imitate(arguments.runs)
        for variant, seed in runs:
            _train(variant, seed, arguments.runs / f"{variant}-{seed}", model)
    found = [
        curves.gather(arguments.runs / f"{variant}-{seed}", KEY, variant, seed)
        for variant, seed in runs
    ]
    whole = curves.report(found, arguments, _work(), key=KEY, iterations=ITERATIONS, draw=draw)
    print(curves.table(whole, KEY, LABELS, ITERATIONS))
    return 0


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
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Date": None})


def _imitate(runs: Path) -> Path:
    """Train on reference solutions and return the folder of the weights."""
    runs.mkdir(parents=True, exist_ok=True)
    file, run_dir = runs / "references.jsonl", runs / "sft"
    env = [word for name, value in ENV.items() for word in (f"--env.{name}", value)]
    if not file.exists():
        _mlrl("collect", ENV_ID, "--actor", "reference", "--tasks", str(DEMONSTRATIONS),
              "--out", str(file), *env)  # fmt: skip
    options = {
        "examples": {"episodes": str(file), "batch_size": "8", "filter_reward": "null"},
        **SHARED, "optimizer": {"lr": "5e-5"},
    }  # fmt: skip
    _run("sft", run_dir, 0, options, SFT_ITERATIONS, {})
    return run_dir / "checkpoints" / f"step_{SFT_ITERATIONS}" / "learner" / "shared"


def _train(variant: str, seed: int, run_dir: Path, model: Path) -> None:
    options = {
        "group": {"size": "3", "joint_mode": "aligned", "branching": "tree"},
        "loss": {"kind": "dr_grpo"}, **SHARED, "optimizer": {"lr": "2e-5"},
    }  # fmt: skip
    options = merge_options(options, VARIANTS[variant])
    evaluation = {"eval_every": ITERATIONS, "eval_tasks": 32, "tasks_per_iteration": TASKS}
    _run("magrpo", run_dir, seed, options, ITERATIONS, evaluation, str(model))


def _run(
    name: str,
    run_dir: Path,
    seed: int,
    options: Mapping[str, Mapping[str, str]],
    iterations: int,
    settings: Mapping[str, int],
    model: str = "smollm2-135m-instruct",
) -> None:
    """Train with a configuration file; resume an interrupted run."""
    if (run_dir / "checkpoints" / f"step_{iterations}").exists():
        return
    config = run_dir.with_suffix(".yaml")
    env = ", ".join(f"{key}: {value}" for key, value in ENV.items())
    learner = ", ".join(
        f"{group}: {{{', '.join(f'{key}: {value}' for key, value in fields.items())}}}"
        for group, fields in options.items()
    )
    train = {
        "iterations": iterations, "seed": seed, "checkpoint_every": iterations,
        "keep_checkpoints": 1, **settings,
    }  # fmt: skip
    config.write_text(
        f"env:\n  id: {ENV_ID}\n  options: {{split: train, {env}}}\n"
        f"learner:\n  name: {name}\n  model: {model}\n  options: {{{learner}}}\n"
        f"train: {{{', '.join(f'{key}: {value}' for key, value in train.items())}}}\n"
    )
    resume = ["--resume"] if run_dir.exists() else []
    _mlrl("train", str(config), "--run-dir", str(run_dir), *resume)


def _mlrl(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "mlrl_learners", *words], check=True)


def _work() -> dict[str, Any]:
    return {
        "env": ENV_ID,
        "env_options": dict(ENV),
        "model": "smollm2-135m-instruct",
        "imitation": f"{DEMONSTRATIONS} references, {SFT_ITERATIONS} steps of 8 answers",
        "iterations": ITERATIONS,
        "tasks_per_iteration": TASKS,
        "variants": {name: dict(options) for name, options in VARIANTS.items()},
        "held_out": "32 problems, 1 sampled episode each",
    }


if __name__ == "__main__":
    sys.exit(main())

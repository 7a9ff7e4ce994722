"""Learning curves of trees of two turns: arithmetic by a solver and a verifier, three seeds each.

    python -m benchmarks.math_curves [--runs runs/math] [--gather-only]

SmolLM2-135M-Instruct, one set of weights for both agents, first imitates reference solutions, then
learns by `magrpo` on trees: 3 answers a prompt, 2 turns, so 3 + 9 nodes' answers a task. Rows are
weighed by the probability of reaching their node (`reach`), or all alike over log-probabilities of
the whole vocabulary (`nodes`, which is how rows were weighed before). Runs that were stopped go on
where they were. What came of them is kept in `benchmarks/math_curves.json` and drawn as
`docs/images/math_curves.svg`; the table is printed. Some hours on two cores.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.loggers import JsonlFile
from mlrl_learners.statistics import mean

__all__ = ["draw", "gather", "main", "table"]

ROOT = Path(__file__).resolve().parents[1]
ENV_ID = "mlrl/math-v0"
ENV = {"max_turns": "2", "feedback": "diagnostics", "topics": "[arithmetic]", "levels": "[1]"}
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "reach": {},
    "nodes": {"turn_weights": "nodes", "renormalize": "false"},
}
ITERATIONS, TASKS, SFT_ITERATIONS, DEMONSTRATIONS = 10, 4, 30, 240
COLORS = {"reach": "#1b6ca8", "nodes": "#c8553d"}
LABELS = {"reach": "turn_weights: reach", "nodes": "turn_weights: nodes, as before"}

Curve = dict[str, Any]
"""One run: variant, seed, `returns` of training an iteration, `held_out` by iteration."""


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is left, gather, draw, and print the table."""
    arguments = _parse(argv)
    runs = [(variant, seed) for seed in arguments.seeds for variant in VARIANTS]
    if not arguments.gather_only:
        model = _imitate(arguments.runs)
        for variant, seed in runs:
            _train(variant, seed, arguments.runs / f"{variant}-{seed}", model)
    curves = [gather(arguments.runs / f"{variant}-{seed}", variant, seed) for variant, seed in runs]
    for curve in curves:
        if not _is_whole(curve):
            print(f"left out: {curve['variant']}, seed {curve['seed']}: not at its end yet")
    curves = [curve for curve in curves if _is_whole(curve)]
    arguments.out.write_text(json.dumps({"work": _work(), "runs": curves}, indent=1) + "\n")
    draw(curves, arguments.picture)
    print(table(curves))
    return 0


def gather(run_dir: Path, variant: str, seed: int) -> Curve:
    """Read the curve of one run: mean returns, of training rollouts and of held-out problems."""
    return {
        "variant": variant,
        "seed": seed,
        "returns": [
            round(float(str(record["train/return"])), 4)
            for record in JsonlFile(run_dir / "metrics.jsonl").records()
        ],
        "held_out": {
            int(str(record["iteration"])): round(float(str(record["mean_return"])), 4)
            for record in JsonlFile(run_dir / "evaluations.jsonl").records()
        },
    }


def table(curves: Sequence[Curve]) -> str:
    """Return a Markdown table: a row a variant, means over seeds with the least and the most."""
    lines = [
        "| rows | first 3 iterations | last 3 | held-out before | after | gain, by seed |",
        "|---|---|---|---|---|---|",
    ]
    for variant, mine in _by_variant(curves).items():
        before = [curve["held_out"][0] for curve in mine]
        after = [curve["held_out"][ITERATIONS] for curve in mine]
        cells = [
            _spread([mean(curve["returns"][:3]) for curve in mine]),
            _spread([mean(curve["returns"][-3:]) for curve in mine]),
            _spread(before),
            _spread(after),
            ", ".join(f"{b - a:+.3f}" for a, b in zip(before, after, strict=True)),
        ]
        lines.append(f"| {LABELS[variant]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(curves: Sequence[Curve], picture: Path) -> None:
    """Draw returns over iterations: the mean of the seeds, and a band from least to most."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for variant, mine in _by_variant(curves).items():
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
    """Train on reference solutions; return the folder of the weights."""
    runs.mkdir(parents=True, exist_ok=True)
    file, run_dir = runs / "references.jsonl", runs / "sft"
    env = [word for name, value in ENV.items() for word in (f"--env.{name}", value)]
    if not file.exists():
        _mlrl("collect", ENV_ID, "--actor", "reference", "--tasks", str(DEMONSTRATIONS),
              "--out", str(file), *env)  # fmt: skip
    options = {
        "episodes": str(file), "batch_size": "8", "share_weights": "true",
        "max_new_tokens": "48", "lr": "5e-5", "precision": "bf16", "filter_reward": "null",
    }  # fmt: skip
    _run("sft", run_dir, 0, options, SFT_ITERATIONS, {})
    return run_dir / "checkpoints" / f"step_{SFT_ITERATIONS}" / "learner" / "shared"


def _train(variant: str, seed: int, run_dir: Path, model: Path) -> None:
    options = {
        "group_size": "3", "joint_mode": "aligned", "branching": "tree", "loss": "dr_grpo",
        "share_weights": "true", "max_new_tokens": "48", "lr": "2e-5", "precision": "bf16",
        **VARIANTS[variant],
    }  # fmt: skip
    evaluation = {"eval_every": ITERATIONS, "eval_tasks": 32, "tasks_per_iteration": TASKS}
    _run("magrpo", run_dir, seed, options, ITERATIONS, evaluation, str(model))


def _run(
    name: str,
    run_dir: Path,
    seed: int,
    options: Mapping[str, str],
    iterations: int,
    settings: Mapping[str, int],
    model: str = "smollm2-135m-instruct",
) -> None:
    """Train from a configuration file of its own; go on where an earlier run stopped."""
    if (run_dir / "checkpoints" / f"step_{iterations}").exists():
        return
    config = run_dir.with_suffix(".yaml")
    env = ", ".join(f"{key}: {value}" for key, value in ENV.items())
    learner = ", ".join(f"{key}: {value}" for key, value in options.items())
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


def _is_whole(curve: Curve) -> bool:
    return {0, ITERATIONS} <= set(curve["held_out"]) and len(curve["returns"]) == ITERATIONS


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


def _by_variant(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    names = dict.fromkeys(str(curve["variant"]) for curve in curves)
    return {name: [curve for curve in curves if curve["variant"] == name] for name in names}


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]"


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learning curves of trees of two turns.")
    parser.add_argument("--runs", type=Path, default=Path("runs/math"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--gather-only", action="store_true", help="train nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "math_curves.json")
    picture = ROOT / "docs" / "images" / "math_curves.svg"
    parser.add_argument("--picture", type=Path, default=picture)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

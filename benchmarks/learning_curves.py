"""Learning curves: four methods on the story environment, three seeds each, equal samples.

    python -m benchmarks.learning_curves [--runs runs/curves] [--gather-only]

Two SmolLM2-135M-Instruct write stories, 288 answers a run; every method takes one optimizer step an
iteration on the same tasks in the same order. Runs that were stopped go on where they were. What
came of them is kept in `benchmarks/learning_curves.json` and drawn as
`docs/images/learning_curves.svg`; the table is printed. Some two hours on two cores.
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
PRESETS: Mapping[str, tuple[str, ...]] = {
    "magrpo": ("story",),
    "marloo": ("story", "--learner.name", "marloo"),
    # A head on the actor's own states: a critic of its own for each agent would double the memory.
    "ippo": ("ippo", "--learner.critic", "value_head", "--learner.epochs", "1"),
    "mappo": ("mappo", "--learner.epochs", "1"),
}
ITERATIONS, TASKS = 12, 2
ANSWERS = TASKS * 6 * 2  # an iteration: group size, agents
COLORS = {"magrpo": "#1b6ca8", "marloo": "#c8553d", "ippo": "#3c8d5a", "mappo": "#7a5ea8"}

Curve = dict[str, Any]
"""One run: method, seed, `returns` of training an iteration, `held_out` by iteration."""


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is left, gather, draw, and print the table."""
    arguments = _parse(argv)
    runs = [(method, seed) for seed in arguments.seeds for method in PRESETS]
    if not arguments.gather_only:
        for method, seed in runs:
            if status := _train(method, seed, arguments.runs / f"{method}-{seed}"):
                return status
    curves = [gather(arguments.runs / f"{method}-{seed}", method, seed) for method, seed in runs]
    for curve in curves:
        if not _is_whole(curve):
            print(f"left out: {curve['method']}, seed {curve['seed']}: not at its end yet")
    curves = [curve for curve in curves if _is_whole(curve)]
    arguments.out.write_text(json.dumps({"work": _work(), "runs": curves}, indent=1) + "\n")
    draw(curves, arguments.picture)
    print(table(curves))
    return 0


def gather(run_dir: Path, method: str, seed: int) -> Curve:
    """Read the curve of one run: mean returns, of training rollouts and of held-out prompts."""
    evaluations = JsonlFile(run_dir / "evaluations.jsonl").records()
    return {
        "method": method,
        "seed": seed,
        "returns": [
            round(float(str(record["train/return"])), 4)
            for record in JsonlFile(run_dir / "metrics.jsonl").records()
        ],
        "held_out": {
            int(str(record["iteration"])): round(float(str(record["mean_return"])), 4)
            for record in evaluations
        },
    }


def table(curves: Sequence[Curve]) -> str:
    """Return a Markdown table: a row a method, means over its seeds with the least and the most."""
    lines = [
        "| method | first 3 iterations | last 3 | held-out, untrained | trained | gain, by seed |",
        "|---|---|---|---|---|---|",
    ]
    for method, mine in _by_method(curves).items():
        before = [curve["held_out"][0] for curve in mine]
        after = [curve["held_out"][ITERATIONS] for curve in mine]
        gains = [b - a for a, b in zip(before, after, strict=True)]
        cells = [
            _spread([mean(curve["returns"][:3]) for curve in mine]),
            _spread([mean(curve["returns"][-3:]) for curve in mine]),
            _spread(before),
            _spread(after),
            ", ".join(f"{gain:+.3f}" for gain in gains),
        ]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(curves: Sequence[Curve], picture: Path) -> None:
    """Draw returns over sampled answers: the mean of the seeds, and a band from least to most."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    grouped = _by_method(curves)
    panels = figure.subplots(1, len(grouped), sharey=True, squeeze=False)[0]
    for axes, (method, mine) in zip(panels, grouped.items(), strict=True):
        smooth = [_smooth(curve["returns"]) for curve in mine]
        answers = [ANSWERS * (number + 1) for number in range(len(smooth[0]))]
        columns = list(zip(*smooth, strict=True))
        color = COLORS[method]
        axes.fill_between(answers, *_bounds(columns), color=color, alpha=0.2, linewidth=0)
        axes.plot(answers, [mean(c) for c in columns], color=color, label="training, 3 iterations")
        for curve in mine:
            held_out = {ANSWERS * at: value for at, value in curve["held_out"].items()}
            axes.plot(list(held_out), list(held_out.values()), "o:", color="0.35", markersize=4)
        axes.plot([], [], "o:", color="0.35", markersize=4, label="held-out prompts, a seed")
        axes.set_title(f"{method}, {len(mine)} seeds", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
    panels[0].set_ylim(0, 1)
    panels[0].set_ylabel("team return")
    figure.supxlabel("answers sampled", fontsize=10)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Date": None})


def _train(method: str, seed: int, run_dir: Path) -> int:
    preset, *overrides = PRESETS[method]
    words = ["--run-dir", str(run_dir), *overrides, "--learner.lr", "1e-4"]
    settings = {
        "iterations": ITERATIONS,
        "tasks_per_iteration": TASKS,
        "seed": seed,
        "eval_every": ITERATIONS,
        "eval_samples": 2,
        "checkpoint_every": ITERATIONS,
        "keep_checkpoints": 1,
    }
    for name, value in settings.items():
        words += [f"--train.{name}", str(value)]
    resume = ["--resume"] if run_dir.exists() else []
    command = [sys.executable, "-m", "mlrl_learners", "train", preset, *words, *resume]
    return subprocess.run(command, check=False).returncode


def _is_whole(curve: Curve) -> bool:
    return {0, ITERATIONS} <= set(curve["held_out"]) and len(curve["returns"]) == ITERATIONS


def _work() -> dict[str, Any]:
    return {
        "env": "mlrl/story-v0",
        "model": "smollm2-135m-instruct",
        "presets": {method: list(words) for method, words in PRESETS.items()},
        "iterations": ITERATIONS,
        "tasks_per_iteration": TASKS,
        "answers_an_iteration": ANSWERS,
        "lr": 1e-4,
        "held_out": "10 prompts, 2 sampled episodes each",
    }


def _by_method(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    return {m: [c for c in curves if c["method"] == m] for m in dict.fromkeys(_methods(curves))}


def _methods(curves: Sequence[Curve]) -> list[str]:
    return [str(curve["method"]) for curve in curves]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]"


def _smooth(values: Sequence[float], window: int = 3) -> list[float]:
    """Return the mean of each value and those just before it."""
    return [mean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]


def _bounds(columns: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [min(column) for column in columns], [max(column) for column in columns]


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learning curves of four methods.")
    parser.add_argument("--runs", type=Path, default=Path("runs/curves"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--gather-only", action="store_true", help="train nothing")
    results = ROOT / "benchmarks" / "learning_curves.json"
    parser.add_argument("--out", type=Path, default=results)
    picture = ROOT / "docs" / "images" / "learning_curves.svg"
    parser.add_argument("--picture", type=Path, default=picture)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

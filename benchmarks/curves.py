"""Learning curves of several runs: reading run folders, JSON files and Markdown tables."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import read_records

__all__ = ["Curve", "gather", "grouped", "parse", "report", "spread", "table"]

ROOT = Path(__file__).resolve().parents[1]

Curve = dict[str, Any]
"""Curve of one run: its group, `seed`, training `returns` per iteration, and `held_out` returns by
iteration."""


def gather(run_dir: Path, key: str, group: str, seed: int) -> Curve:
    """Read the curve of one run: mean returns, of training rollouts and of held-out tasks."""
    return {
        key: group,
        "seed": seed,
        "returns": [
            round(float(str(record["train/return"])), 4)
            for record in read_records(run_dir / "metrics.jsonl")
        ],
        "held_out": {
            int(str(record["iteration"])): round(float(str(record["mean_return"])), 4)
            for record in read_records(run_dir / "evaluations.jsonl")
        },
    }


def grouped(curves: Sequence[Curve], key: str) -> dict[str, list[Curve]]:
    """Return the curves of each group, in order of first appearance."""
    names = dict.fromkeys(str(curve[key]) for curve in curves)
    return {name: [curve for curve in curves if curve[key] == name] for name in names}


def table(curves: Sequence[Curve], key: str, labels: Mapping[str, str], iterations: int) -> str:
    """Return a Markdown table with one row per group: mean over seeds, minimum and maximum."""
    lines = [
        f"| {key} | first 3 iterations | last 3 | held-out, untrained | trained | gain, by seed |",
        "|---|---|---|---|---|---|",
    ]
    for group, mine in grouped(curves, key).items():
        before = [curve["held_out"][0] for curve in mine]
        after = [curve["held_out"][iterations] for curve in mine]
        cells = [
            spread([mean(curve["returns"][:3]) for curve in mine]),
            spread([mean(curve["returns"][-3:]) for curve in mine]),
            spread(before),
            spread(after),
            ", ".join(f"{b - a:+.3f}" for a, b in zip(before, after, strict=True)),
        ]
        lines.append(f"| {labels.get(group, group)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def report(
    curves: Sequence[Curve],
    arguments: argparse.Namespace,
    work: Mapping[str, Any],
    *,
    key: str,
    iterations: int,
    draw: Callable[[Sequence[Curve], Path], None],
) -> list[Curve]:
    """Write the curves of finished runs to `arguments.out`, draw them, and return them."""
    whole = []
    for curve in curves:
        if {0, iterations} <= set(curve["held_out"]) and len(curve["returns"]) == iterations:
            whole.append(curve)
        else:
            print(f"left out: {curve[key]}, seed {curve['seed']}: not finished")
    arguments.out.write_text(json.dumps({"work": work, "runs": whole}, indent=1) + "\n")
    draw(whole, arguments.picture)
    return whole


def parse(argv: Sequence[str] | None, description: str, name: str, runs: str) -> argparse.Namespace:
    """Parse the arguments of a script; `name` is the stem of its output files."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=Path, default=Path(runs))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--gather-only", action="store_true", help="do not train, use existing runs"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / f"{name}.json")
    picture = ROOT / "docs" / "images" / f"{name}.svg"
    parser.add_argument("--picture", type=Path, default=picture)
    return parser.parse_args(argv)


def spread(values: Sequence[float]) -> str:
    """Return the mean with minimum and maximum, as text."""
    return f"{mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]"

"""Table of published experiments: ours beside the figures of the papers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.curves import spread
from benchmarks.published.plans import EXPERIMENTS
from mlrl_learners.loggers import JsonlFile

__all__ = ["read_run", "table", "write_results"]

Row = dict[str, Any]


def read_run(name: str, seed: int, run_dir: Path) -> Row | None:
    """Return the state of a run, or None if it has no evaluation yet."""
    evaluations = JsonlFile(run_dir / "evaluations.jsonl").records()
    held_out = {int(str(e["iteration"])): float(str(e["mean_return"])) for e in evaluations}
    if not held_out:
        return None
    metrics = list(JsonlFile(run_dir / "metrics.jsonl").records())
    seconds = sum(float(str(record["seconds"])) for record in metrics)
    return {
        "experiment": name,
        "seed": seed,
        "iterations": len(metrics),
        "hours": round(seconds / 3600, 3),
        "held_out": {str(step): round(value, 4) for step, value in sorted(held_out.items())},
    }


def write_results(rows: Sequence[Row], path: Path, *, versions: Mapping[str, str]) -> None:
    """Write the runs with their settings and versions as JSON."""
    settings = {
        name: {"preset": e.preset, "model": e.model, "options": dict(e.options)}
        for name, e in EXPERIMENTS.items()
    }
    found = {"versions": dict(versions), "settings": settings, "runs": list(rows)}
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table with one row per experiment; the last column is the papers'."""
    lines = [
        "| experiment | seeds | iterations | held-out, untrained | last | hours | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, experiment in EXPERIMENTS.items():
        mine = [row for row in rows if row["experiment"] == name]
        if not mine:
            lines.append(f"| `{name}` | 0 | - | - | - | - | {experiment.published} |")
            continue
        returns = [list(row["held_out"].values()) for row in mine]
        cells = [
            str(len(mine)),
            ", ".join(str(row["iterations"]) for row in mine),
            spread([values[0] for values in returns]),
            spread([values[-1] for values in returns]),
            f"{sum(row['hours'] for row in mine):.1f}",
            experiment.published,
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)

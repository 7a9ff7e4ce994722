"""Table of published experiments: ours beside the figures of the papers.

Means are of finished runs. Runs that have not ended are listed with their iterations, because their
last evaluations are of other iterations.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.published.plans import EXPERIMENTS
from benchmarks.shared.curves import spread
from mlrl_learners.loggers import read_records
from mlrl_learners.runs.files import ENVIRONMENT_FILE, EVALUATIONS_FILE, METRICS_FILE

__all__ = ["Row", "read_run", "table"]

Row = dict[str, Any]


def read_run(name: str, seed: int, run_dir: Path, *, planned: int) -> Row | None:
    """Return the state of a run, or None if it has no evaluation yet.

    Args:
        name: Name of the experiment.
        seed: Seed of the run.
        run_dir: Folder of the run; nothing in it is changed.
        planned: Number of iterations of a finished run.
    """
    evaluations = read_records(run_dir / EVALUATIONS_FILE)
    held_out = {int(str(e["iteration"])): float(str(e["mean_return"])) for e in evaluations}
    if not held_out:
        return None
    metrics = list(read_records(run_dir / METRICS_FILE))
    seconds = sum(float(str(record["seconds"])) for record in metrics)
    return {
        "experiment": name,
        "seed": seed,
        "iterations": len(metrics),
        "planned": planned,
        "hours": round(seconds / 3600, 3),
        "held_out": {str(step): round(value, 4) for step, value in sorted(held_out.items())},
        "versions": _versions(run_dir / ENVIRONMENT_FILE),
    }


def _versions(file: Path) -> dict[str, str]:
    """Return the versions of packages with which a run was started."""
    return dict(json.loads(file.read_text("utf-8"))["packages"]) if file.exists() else {}


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table with one row per experiment; the last column is the papers'."""
    lines = [
        "| experiment | seeds | iterations | held-out, untrained | trained | hours | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, experiment in EXPERIMENTS.items():
        mine = [row for row in rows if row["experiment"] == name]
        cells = [*_cells(mine), experiment.published]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(rows: Sequence[Row]) -> list[str]:
    """Return the cells of an experiment from the number of seeds to the hours."""
    if not rows:
        return ["0", "-", "-", "-", "-"]
    finished = [row for row in rows if _is_finished(row)]
    untrained = [row["held_out"]["0"] for row in finished]
    trained = [row["held_out"][str(row["planned"])] for row in finished]
    return [
        str(len(finished)),
        ", ".join(_iterations(row) for row in rows),
        spread(untrained) if finished else "-",
        spread(trained) if finished else "-",
        f"{sum(row['hours'] for row in rows):.1f}",
    ]


def _is_finished(row: Mapping[str, Any]) -> bool:
    ends = {"0", str(row["planned"])}
    return bool(row["iterations"] == row["planned"] and ends <= set(row["held_out"]))


def _iterations(row: Mapping[str, Any]) -> str:
    done, planned = row["iterations"], row["planned"]
    return str(done) if _is_finished(row) else f"{done} of {planned} (left out)"

"""Stored results of published experiments: one JSON file, to which every call adds its runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.published.configs import settings
from benchmarks.published.plans import EXPERIMENTS
from benchmarks.published.table import Row

__all__ = ["ResultsError", "add_results", "check_results"]


class ResultsError(RuntimeError):
    """A file holds results of another kind; the message names it and the fix."""


def check_results(path: Path, *, smoke: bool) -> None:
    """Check that results can be added to a file.

    Args:
        path: The file, which need not exist.
        smoke: The results are those of a smoke test.

    Raises:
        ResultsError: If it is not a file of results, or only one of both is of a smoke test.
    """
    _read(path, smoke=smoke)


def add_results(rows: Sequence[Row], path: Path, *, smoke: bool) -> tuple[list[Row], list[str]]:
    """Add runs to a file, with the settings of all experiments.

    Runs in the file stay, apart from those that are given again and those of other settings.

    Args:
        rows: Runs of this call.
        path: The file.
        smoke: The runs are those of a smoke test.

    Returns:
        All runs that the file then has, and one line for each that was removed.

    Raises:
        ResultsError: As `check_results`.
    """
    old = _read(path, smoke=smoke)
    now = {name: settings(each, smoke=smoke) for name, each in EXPERIMENTS.items()}
    runs: dict[tuple[str, int], Row] = {}
    removed = []
    for row in old["runs"]:
        name, seed = row["experiment"], row["seed"]
        if name in now and old["settings"].get(name) == now[name]:
            runs[name, seed] = row
        else:
            removed.append(f"{name}, seed {seed}: its settings are not those of the plan")
    runs |= {(row["experiment"], row["seed"]): row for row in rows}
    order = list(EXPERIMENTS)
    whole = [runs[key] for key in sorted(runs, key=lambda key: (order.index(key[0]), key[1]))]
    _write({"smoke": smoke, "settings": now, "runs": whole}, path)
    return whole, removed


def _read(path: Path, *, smoke: bool) -> dict[str, Any]:
    if not path.exists():
        return {"smoke": smoke, "settings": {}, "runs": []}
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("smoke") is not smoke:
        wanted = "of a smoke test" if smoke else "of published settings"
        raise ResultsError(
            f"{str(path)!r} holds no results {wanted}: choose another file with --out"
        )
    return found


def _write(found: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    partial.rename(path)

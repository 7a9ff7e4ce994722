"""The file of published runs, to which later runs are added.

A published run stays as long as its task is learnt as it was: a run of the same task, method and
seed replaces it, and a task whose plan has changed loses its runs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.perf.common import hardware
from benchmarks.teams.comparisons import Run
from benchmarks.teams.plans import METHODS, TASKS
from mlrl_learners.runs.provenance import package_versions

__all__ = ["changed_tasks", "published_with", "write_published"]


def changed_tasks(file: Path) -> list[str]:
    """Return the published tasks that are learnt in another way now, or not at all."""
    return [name for name, work in _stored(file)["work"].items() if work != _work(name)]


def published_with(runs: Sequence[Run], file: Path) -> list[Run]:
    """Return new runs and the published ones that they do not replace.

    Args:
        runs: Finished runs of a folder.
        file: The published results, which may be missing.

    Returns:
        Runs in the order of tasks, methods and seeds.
    """
    changed = changed_tasks(file)
    found = {_key(run): run for run in _stored(file)["runs"] if run["task"] not in changed}
    return [run for _, run in sorted((found | {_key(run): run for run in runs}).items())]


def write_published(
    runs: Sequence[Run], references: Mapping[str, Mapping[str, float]], file: Path
) -> None:
    """Write runs with how their tasks are learnt, and what scripts earn.

    `made_with` names the versions and the hardware of the last runs that were added.
    """
    whole = {
        "work": {name: _work(name) for name in references},
        "made_with": {"packages": package_versions(), "hardware": hardware()},
        "references": references,
        "runs": runs,
    }
    file.write_text(json.dumps(whole) + "\n", encoding="utf-8")


def _stored(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"work": {}, "runs": []}
    stored: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return stored


def _key(run: Run) -> tuple[int, int, int]:
    """Return the place of a run in tables."""
    return list(TASKS).index(run["task"]), list(METHODS).index(run["method"]), run["seed"]


def _work(name: str) -> Any:  # noqa: ANN401 - JSON
    """Return how a task is learnt, as JSON stores it; None if there is no such task."""
    return json.loads(json.dumps(asdict(TASKS[name]))) if name in TASKS else None

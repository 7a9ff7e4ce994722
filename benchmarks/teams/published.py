"""The files of published runs, to which later runs are added.

A published run stays as long as its task and its method are as they were when it was made: a run of
the same task, method and seed replaces it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.perf.common import hardware
from benchmarks.teams.comparisons import Run
from benchmarks.teams.plans import Method
from benchmarks.teams.tasks import TASKS
from mlrl_learners.runs.provenance import package_versions

__all__ = ["outdated", "published_with", "with_published", "write_published"]


def outdated(file: Path, methods: Mapping[str, Method]) -> list[str]:
    """Return the published tasks and methods that are defined in another way now, or not at all.

    Args:
        file: The published results, which may be missing.
        methods: All methods that the file may have.
    """
    stored = _stored(file)
    now = {name: _learnt(_json(task)) for name, task in TASKS.items()}
    found = [name for name, work in stored["work"].items() if _learnt(work) != now.get(name)]
    defined = {name: _learnt(_json(method)) for name, method in methods.items()}
    return found + [
        name for name, method in stored["methods"].items() if _learnt(method) != defined.get(name)
    ]


def with_published(runs: Sequence[Run], file: Path, methods: Mapping[str, Method]) -> list[Run]:
    """Return `published_with`, and print what is left out because it is defined in another way."""
    for name in outdated(file, methods):
        print(f"left out: published runs of {name}, defined in another way now")
    return published_with(runs, file, methods)


def published_with(
    runs: Sequence[Run],
    file: Path,
    methods: Mapping[str, Method],
) -> list[Run]:
    """Return new runs and the published ones that they do not replace.

    Args:
        runs: Finished runs of a folder.
        file: The published results, which may be missing.
        methods: All methods that the file may have, in the order of tables.

    Returns:
        Runs in the order of tasks, methods and seeds.
    """

    def place(run: Run) -> tuple[int, int, int]:
        return list(TASKS).index(run["task"]), list(methods).index(run["method"]), run["seed"]

    old = set(outdated(file, methods))
    kept = [each for each in _stored(file)["runs"] if not old & {each["task"], each["method"]}]
    return [run for _, run in sorted({place(run): run for run in (*kept, *runs)}.items())]


def write_published(
    runs: Sequence[Run],
    file: Path,
    methods: Mapping[str, Method],
    **parts: Any,  # noqa: ANN401 - JSON
) -> None:
    """Write runs with how their tasks are learnt.

    Args:
        runs: The runs.
        file: The published results. `made_with` in it names the versions and the hardware of the
            last runs that were added.
        methods: All methods that the runs may have.
        **parts: Further parts of the file.
    """
    whole = {
        "work": {name: _json(TASKS[name]) for name in dict.fromkeys(run["task"] for run in runs)},
        "methods": {
            name: _json(methods[name]) for name in dict.fromkeys(run["method"] for run in runs)
        },
        "made_with": {"packages": package_versions(), "hardware": hardware()},
        **parts,
        "runs": runs,
    }
    file.write_text(json.dumps(whole) + "\n", encoding="utf-8")


def _stored(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"work": {}, "methods": {}, "runs": []}
    stored: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return stored


def _learnt(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return what runs depend on; references are played, and labels written, for every table."""
    return {name: value for name, value in plan.items() if name not in ("references", "label")}


def _json(plan: Any) -> Any:  # noqa: ANN401 - a dataclass
    """Return a task or a method as JSON stores it."""
    return json.loads(json.dumps(asdict(plan)))

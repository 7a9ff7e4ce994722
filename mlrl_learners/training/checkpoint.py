"""Checkpoints of a run, written atomically.

A checkpoint is written into a temporary folder and renamed; folders that a killed process left are
removed by the next write. With several processes, rank 0 writes and all processes read, so the run
directory must be on a disk that all of them share.

A checkpoint contains the version of the methods that its run is trained with. Checkpoints of
another version can be loaded for play and evaluation, but not resumed, because the rest of the run
would train differently.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mlrl_learners.errors import CheckpointError, PeerError, RunDirError
from mlrl_learners.processes.work_sharing import exchange, is_main
from mlrl_learners.types import Learner

__all__ = ["check_resumable", "latest_checkpoint", "read_checkpoint", "write_checkpoint"]

PREFIX = "step_"
PARTIAL_PREFIX = ".partial_"
STATE_FILE = "state.json"
VERSION_KEY = "version"
VERSION = 2
"""Version of the methods, which increases when the same options train differently.

1 (not stored): all rows of a tree have equal weights, losses are means over an answer's tokens.
2: rows are weighted by the probability of reaching them, losses are those of the papers.
"""
LEARNER_FOLDER = "learner"


def write_checkpoint(
    run_dir: Path, iteration: int, learner: Learner, state: Mapping[str, object], *, keep: int
) -> Path:
    """Write `run_dir/checkpoints/step_N` and remove all but the last `keep` checkpoints.

    Args:
        run_dir: Folder of the run.
        iteration: Number of completed iterations, N.
        learner: Learner, which saves itself into the folder `learner`.
        state: Further state of the run, JSON values.
        keep: Number of checkpoints to keep, at least 1.

    Raises:
        RunDirError: If it cannot be written; earlier checkpoints are not changed.
    """
    final = run_dir / "checkpoints" / f"{PREFIX}{iteration}"
    if is_main():
        _write(final, learner, {"iteration": iteration, **state, VERSION_KEY: VERSION})
        for _, old in _checkpoints(run_dir)[:-keep]:
            _remove(old)
    elif getattr(learner, "is_sharded", False):  # gathering the weights needs all processes
        with tempfile.TemporaryDirectory() as discarded:
            learner.save(Path(discarded))
    exchange(None)  # wait until the checkpoint is complete
    return final


def latest_checkpoint(run_dir: Path) -> Path | None:
    """Return the checkpoint of the highest iteration that rank 0 sees, or None."""
    found = _checkpoints(run_dir)
    return exchange(found[-1][1] if found else None)[0]


def check_resumable(run_dir: Path) -> None:
    """Check that the last checkpoint of a run, if any, has the current version of the methods.

    Raises:
        CheckpointError: If it is damaged or has another version.
    """
    path = latest_checkpoint(run_dir)
    if path is None:
        return
    version = _read_state(path).get(VERSION_KEY, 1)
    if version != VERSION:
        raise CheckpointError(
            f"{str(path)!r} cannot be resumed: it is of version {version} of the methods, this is "
            f"{VERSION}, which computes row weights, log-probabilities and losses of an update "
            "differently; start a new run, if needed from its weights (set learner.model to a "
            f"folder in {LEARNER_FOLDER}, such as {LEARNER_FOLDER}/shared, or one named like an "
            "agent); mlrl evaluate still reads it"
        )


def read_checkpoint(path: Path, learner: Learner) -> dict[str, object]:
    """Load a checkpoint of any version into the learner, and return the state stored with it.

    Raises:
        CheckpointError: If it does not exist or does not fit the learner.
    """
    state = _read_state(path)
    state.pop(VERSION_KEY, None)
    learner.load(path / LEARNER_FOLDER)
    return state


def _read_state(path: Path) -> dict[str, object]:
    try:
        state = json.loads((path / STATE_FILE).read_text())
    except (OSError, ValueError) as error:
        fix = "" if is_main() else "; it must be on a disk that all processes see"
        raise CheckpointError(f"{str(path)!r} is no checkpoint: {error}{fix}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{str(path)!r} is no checkpoint: {STATE_FILE} holds no object")
    return state


def _write(final: Path, learner: Learner, state: Mapping[str, object]) -> None:
    folder = final.parent
    partial = folder / f"{PARTIAL_PREFIX}{final.name.removeprefix(PREFIX)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_partial(folder)
        (partial / LEARNER_FOLDER).mkdir(parents=True)
        learner.save(partial / LEARNER_FOLDER)
        (partial / STATE_FILE).write_text(json.dumps(state) + "\n")
        _sync(partial)
        _remove(final)
        partial.rename(final)
        _sync_folder(folder)
    except PeerError:
        raise
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        shutil.rmtree(partial, ignore_errors=True)
        raise RunDirError(
            f"cannot write the checkpoint {str(final)!r}: {error}; free some space and resume"
        ) from error


def _checkpoints(run_dir: Path) -> list[tuple[int, Path]]:
    numbered = [
        (int(path.name.removeprefix(PREFIX)), path)
        for path in (run_dir / "checkpoints").glob(f"{PREFIX}*")
        if path.name.removeprefix(PREFIX).isdigit()
    ]
    return sorted(numbered)


def _remove(checkpoint: Path) -> None:
    """Remove a checkpoint atomically, by renaming it first."""
    if checkpoint.exists():
        doomed = checkpoint.with_name(f"{PARTIAL_PREFIX}{checkpoint.name}")
        checkpoint.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _remove_partial(folder: Path) -> None:
    for leftover in folder.glob(f"{PARTIAL_PREFIX}*"):
        shutil.rmtree(leftover)


def _sync(folder: Path) -> None:
    """Write the files to the disk, so that the rename cannot precede their contents."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # Windows, which cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Checkpoints of a run: complete or absent, never half.

A checkpoint is written beside its final place and renamed; what a killed writer left behind is
removed by the next one. With several processes the first one writes, and all of them read: the
folder must be on a disk that all of them see.

A checkpoint says which version of the methods its run is trained with. Runs of another version can
be played and evaluated, but not gone on with: half of such a run would be another method.
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
"""Increases when the same options train differently.

1 (not written): rows of a tree weighed alike, losses were means over an answer's tokens.
2: each row weighs the probability of reaching it, and losses are as the methods' papers have them.
"""
LEARNER_FOLDER = "learner"


def write_checkpoint(
    run_dir: Path, iteration: int, learner: Learner, state: Mapping[str, object], *, keep: int
) -> Path:
    """Write `run_dir/checkpoints/step_N` and remove all but the last `keep` checkpoints.

    Args:
        run_dir: The run's folder.
        iteration: Iterations that are done, N.
        learner: Saves itself into the folder `learner`.
        state: What else is needed to go on, JSON values.
        keep: How many checkpoints stay, at least 1.

    Raises:
        RunDirError: If it cannot be written; earlier checkpoints are untouched.
    """
    final = run_dir / "checkpoints" / f"{PREFIX}{iteration}"
    if is_main():
        _write(final, learner, {"iteration": iteration, **state, VERSION_KEY: VERSION})
        for _, old in _checkpoints(run_dir)[:-keep]:
            _remove(old)
    elif getattr(learner, "is_sharded", False):  # it takes all of them to put it together
        with tempfile.TemporaryDirectory() as nowhere:
            learner.save(Path(nowhere))
    exchange(None)  # nobody goes on before it is there
    return final


def latest_checkpoint(run_dir: Path) -> Path | None:
    """Return the checkpoint of the highest iteration, or None; the first process decides."""
    found = _checkpoints(run_dir)
    return exchange(found[-1][1] if found else None)[0]


def check_resumable(run_dir: Path) -> None:
    """Check that a run, if it has a checkpoint, is of this version of the methods.

    Raises:
        CheckpointError: If its last checkpoint is damaged, or of another version.
    """
    path = latest_checkpoint(run_dir)
    if path is None:
        return
    version = _read_state(path).get(VERSION_KEY, 1)
    if version != VERSION:
        raise CheckpointError(
            f"{str(path)!r} cannot be resumed: it is of version {version} of the methods, this is "
            f"{VERSION}, which computes row weights, log-probabilities and losses of an update "
            "differently; start a new run, with its weights if they are wanted (learner.model "
            f"takes a folder in {LEARNER_FOLDER}, such as {LEARNER_FOLDER}/shared, or one named "
            "like an agent); mlrl evaluate still reads it"
        )


def read_checkpoint(path: Path, learner: Learner) -> dict[str, object]:
    """Load a checkpoint, of whichever version, into the learner; return the state stored with it.

    Raises:
        CheckpointError: If there is none, or it is another learner's.
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
    """Remove a checkpoint so that a kill in between leaves no half of one under its name."""
    if checkpoint.exists():
        doomed = checkpoint.with_name(f"{PARTIAL_PREFIX}{checkpoint.name}")
        checkpoint.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _remove_partial(folder: Path) -> None:
    for leftover in folder.glob(f"{PARTIAL_PREFIX}*"):
        shutil.rmtree(leftover)


def _sync(folder: Path) -> None:
    """Make sure the files are on the disk before the rename says so."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

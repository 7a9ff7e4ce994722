"""Checkpoints of a run, written atomically.

A checkpoint is written into a temporary folder and renamed; folders that a killed process left are
removed by the next write. With several processes, rank 0 writes and all processes read, so the run
directory must be on a disk that all of them share.

A checkpoint contains the version of the methods that its run is trained with. Checkpoints of
another version can be loaded for play and evaluation, but not resumed, because the rest of the run
would train differently.
"""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mlrl_learners.errors import CheckpointError
from mlrl_learners.processes.work_sharing import exchange, is_main
from mlrl_learners.runs.folders import (
    LEARNER_FOLDER,
    STATE_FILE,
    STEP_PREFIX,
    WEIGHTS_ONLY,
    numbered_folders,
    reading,
    remove_folder,
    write_folder,
)
from mlrl_learners.types import Learner

__all__ = [
    "check_resumable",
    "checkpoint_iterations",
    "latest_checkpoint",
    "read_checkpoint",
    "resume_checkpoint",
    "write_checkpoint",
]

VERSION_KEY = "version"
VERSION = 2
"""Version of the methods, which increases when the same options train differently.

1 (not stored): all rows of a tree have equal weights, losses are means over an answer's tokens.
2: rows are weighted by the probability of reaching them, losses are those of the papers.
"""


def write_checkpoint(
    run_dir: Path,
    iteration: int,
    learner: Learner,
    state: Mapping[str, object],
    *,
    keep: int,
    fill: Callable[[Path], None] | None = None,
) -> Path:
    """Write `run_dir/checkpoints/step_N` and remove all but the last `keep` checkpoints.

    Args:
        run_dir: Folder of the run.
        iteration: Number of completed iterations, N.
        learner: Learner, which saves itself into the folder `learner`.
        state: Further state of the run, JSON values.
        keep: Number of checkpoints to keep, at least 1.
        fill: Writes further files into the folder of the checkpoint.

    Raises:
        RunDirError: If it cannot be written; earlier checkpoints are not changed.
    """
    final = run_dir / "checkpoints" / f"{STEP_PREFIX}{iteration}"
    if is_main():
        _write(final, learner, {"iteration": iteration, **state, VERSION_KEY: VERSION}, fill)
        for _, old in _checkpoints(run_dir)[:-keep]:
            remove_folder(old)
    elif getattr(learner, "is_sharded", False):  # gathering the weights needs all processes
        with tempfile.TemporaryDirectory() as discarded:
            learner.save(Path(discarded))
    exchange(None)  # wait until the checkpoint is complete
    return final


def latest_checkpoint(run_dir: Path) -> Path | None:
    """Return the checkpoint of the highest iteration that rank 0 sees, or None."""
    found = _checkpoints(run_dir)
    return exchange(found[-1][1] if found else None)[0]


def checkpoint_iterations(run_dir: Path) -> list[int]:
    """Return the iterations of all checkpoints that this process sees."""
    return [iteration for iteration, _ in _checkpoints(run_dir)]


def check_resumable(run_dir: Path) -> None:
    """Check that the last checkpoint of a run, if any, has the current version of the methods.

    Raises:
        CheckpointError: If it is damaged or has another version.
    """
    path = latest_checkpoint(run_dir)
    if path is None:
        return
    with _resuming(path):
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

    Of a snapshot (`mlrl_learners.selfplay.snapshots`) the weights are loaded, for play.

    Raises:
        CheckpointError: If it does not exist or does not fit the learner.
    """
    state = _read_state(path)
    state.pop(VERSION_KEY, None)
    with reading(path):
        if state.pop(WEIGHTS_ONLY, False):
            learner.load_weights(path / LEARNER_FOLDER)  # type: ignore[attr-defined]  # it saved them
        else:
            learner.load(path / LEARNER_FOLDER)
    return state


def resume_checkpoint(path: Path, learner: Learner) -> int:
    """Load a checkpoint into the learner to go on from it, and return its iteration.

    Raises:
        CheckpointError: As `read_checkpoint`, with how to go on without the checkpoint.
    """
    with _resuming(path):
        return int(str(read_checkpoint(path, learner)["iteration"]))


@contextlib.contextmanager
def _resuming(path: Path) -> Iterator[None]:
    """Add to errors of a checkpoint how a run can be resumed without it.

    Args:
        path: A checkpoint in a run directory.

    Raises:
        CheckpointError: If the block raises one.
    """
    try:
        yield
    except CheckpointError as error:
        before = any(other != path for _, other in numbered_folders(path.parent, STEP_PREFIX))
        origin = "the checkpoint before it" if before else "the start"
        raise CheckpointError(f"{error}; remove {str(path)!r} to go on from {origin}") from error


def _read_state(path: Path) -> dict[str, object]:
    try:
        state = json.loads((path / STATE_FILE).read_text())
    except (OSError, ValueError) as error:
        fix = "" if is_main() else "; it must be on a disk that all processes see"
        raise CheckpointError(f"{str(path)!r} is no checkpoint: {error}{fix}") from error
    if not isinstance(state, dict) or not isinstance(state.get("iteration"), int):
        raise CheckpointError(f"{str(path)!r} is no checkpoint: {STATE_FILE} holds no iteration")
    return state


def _write(
    final: Path,
    learner: Learner,
    state: Mapping[str, object],
    fill: Callable[[Path], None] | None,
) -> None:
    def write(folder: Path) -> None:
        (folder / LEARNER_FOLDER).mkdir()
        learner.save(folder / LEARNER_FOLDER)
        if fill is not None:
            fill(folder)
        (folder / STATE_FILE).write_text(json.dumps(state) + "\n")

    write_folder(final, write, "checkpoint")


def _checkpoints(run_dir: Path) -> list[tuple[int, Path]]:
    return numbered_folders(run_dir / "checkpoints", STEP_PREFIX)

"""Checkpoints and snapshots in a run directory: folders that are written completely or not at all.

A folder is written under another name and renamed; what a killed process left is removed by the
next write.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mlrl_envs.errors import MlrlError
from mlrl_learners.errors import CheckpointError, PeerError, RunDirError

__all__ = [
    "LEARNER_FOLDER",
    "STATE_FILE",
    "STEP_PREFIX",
    "WEIGHTS_ONLY",
    "is_below",
    "is_file_error",
    "numbered_folders",
    "reading",
    "remove_folder",
    "write_folder",
]

STEP_PREFIX = "step_"
"""Beginning of the name of a folder, before its iteration."""
STATE_FILE = "state.json"
"""State of the run in such a folder."""
LEARNER_FOLDER = "learner"
"""Folder in it that the learner wrote."""
WEIGHTS_ONLY = "weights_only"
"""Key of the state: whether the learner saved its weights without optimizers."""
PARTIAL_PREFIX = ".partial_"


def numbered_folders(parent: Path, prefix: str) -> list[tuple[int, Path]]:
    """Return the folders `PREFIX` + number in a folder, by number."""
    numbered = [
        (int(path.name.removeprefix(prefix)), path)
        for path in parent.glob(f"{prefix}*")
        if path.name.removeprefix(prefix).isdigit()
    ]
    return sorted(numbered)


def is_below(path: str, folders: Iterable[Path]) -> bool:
    """Return whether a path, which need not exist, is one of some folders or in one of them."""
    return any(Path(path).resolve().is_relative_to(folder.resolve()) for folder in folders)


def write_folder(final: Path, fill: Callable[[Path], None], what: str) -> None:
    """Write a folder, or leave everything as it was.

    Args:
        final: The folder; replaced if it exists.
        fill: Writes the contents into the empty folder that it is called with.
        what: Kind of the folder, for the message.

    Raises:
        RunDirError: If it cannot be written.
    """
    parent = final.parent
    partial = parent / f"{PARTIAL_PREFIX}{final.name}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for leftover in parent.glob(f"{PARTIAL_PREFIX}*"):
            shutil.rmtree(leftover)
        partial.mkdir()
        fill(partial)
        _sync(partial)
        remove_folder(final)
        partial.rename(final)
        _sync_folder(parent)
    except PeerError:
        raise
    except Exception as error:
        if not is_file_error(error):
            raise
        shutil.rmtree(partial, ignore_errors=True)
        raise RunDirError(
            f"cannot write the {what} {str(final)!r}: {error}; free some space and resume"
        ) from error


def is_file_error(error: Exception) -> bool:
    """Return whether an error is that of a file; torch and safetensors have their own types."""
    is_safetensors = type(error).__module__.startswith("safetensors")
    return isinstance(error, OSError | RuntimeError) or is_safetensors


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an error of a file below `path` into a `CheckpointError` that names the path.

    Args:
        path: A checkpoint, or a folder of weights.

    Raises:
        CheckpointError: If a file cannot be read. Errors of mlrl are raised unchanged.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, MlrlError) or not is_file_error(error):
            raise
        reason = str(error).strip().partition("\n")[0]
        message = f"{str(path)!r} cannot be loaded, it may be damaged: {reason}"
        raise CheckpointError(message) from error


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically, by renaming it first."""
    if folder.exists():
        doomed = folder.with_name(f"{PARTIAL_PREFIX}{folder.name}_old")
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


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

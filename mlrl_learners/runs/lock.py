"""Locks of run directories and files, so that one process at a time writes into them."""

import contextlib
import errno
import time
from pathlib import Path
from typing import IO

from mlrl_learners.errors import RunDirError

with contextlib.suppress(ImportError):  # Windows has none, and there are no locks there
    import fcntl

__all__ = ["hold_file", "hold_folder"]

LOCK_FILE = ".lock"
SECONDS = 5.0  # a killed run may leave children that hold the lock until they notice
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of file systems without locks, such as some network file systems."""


def hold_folder(folder: Path) -> IO[str]:
    """Make a run directory if needed, and lock it until the returned file is closed.

    The end of the process, however it ends, closes the file.

    Raises:
        RunDirError: If another run holds the lock, or the folder cannot be written.
    """
    return _hold(folder / LOCK_FILE, folder, "run")


def hold_file(path: Path) -> IO[str]:
    """Make a file and its folder if needed, and lock it until the returned file is closed.

    The end of the process, however it ends, closes the file.

    Raises:
        RunDirError: If another process holds the lock, or the file cannot be written.
    """
    return _hold(path, path, "process")


def _hold(locked: Path, shown: Path, holder: str) -> IO[str]:
    try:
        locked.parent.mkdir(parents=True, exist_ok=True)
        file = locked.open("a")
    except OSError as error:
        raise RunDirError(f"cannot write {str(shown)!r}: {error}") from error
    last = time.monotonic() + SECONDS
    while not _try_lock(file):
        if time.monotonic() >= last:
            file.close()
            kind = "folder" if shown != locked else "file"
            raise RunDirError(
                f"{str(shown)!r} is written by another {holder} that has not ended: wait for it, "
                f"stop it, or choose another {kind}"
            )
        time.sleep(0.05)
    return file


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except NameError:
        return True
    except OSError as error:
        return error.errno in NO_LOCKS
    return True

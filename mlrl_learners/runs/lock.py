"""Lock of a run directory, so that one process at a time writes into it."""

import contextlib
import errno
import time
from pathlib import Path
from typing import IO

from mlrl_learners.errors import RunDirError

with contextlib.suppress(ImportError):  # Windows has none, and there are no locks there
    import fcntl

__all__ = ["hold_folder"]

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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE).open("a")
    except OSError as error:
        raise RunDirError(f"cannot write {str(folder)!r}: {error}") from error
    last = time.monotonic() + SECONDS
    while not _try_lock(file):
        if time.monotonic() >= last:
            file.close()
            raise RunDirError(
                f"{str(folder)!r} is written by another run that has not ended: wait for it, stop "
                "it, or choose another folder"
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

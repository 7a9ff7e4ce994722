"""Where a session's files are: the scratch mount in tier A, a private directory in tier B.

Below tier B nothing keeps a program from writing elsewhere, so it may write nowhere.
"""

# pathlib is not loaded in workers
# ruff: noqa: PTH101, PTH106, PTH108, PTH208, PTH104

import contextlib
import os
import time
from typing import Protocol

from mlrl_envs.sandbox.jail import jail

__all__ = ["MAX_BYTES", "MAX_ENTRIES", "Folder", "open_folder"]

MAX_BYTES, MAX_ENTRIES = 16 << 20, 1024
MAX_DEPTH = 2048  # characters of a path
PREFIX = "mlrl-session-"
RECENT_SECONDS = 60.0  # one just made may not be locked yet


class Folder(Protocol):
    """A session's directory.

    Attributes:
        path: Where it is, as cells see it.
        writable: Paths that confinement must leave open for writing.
        usable: Whether anything can be written at all.
    """

    path: str
    writable: tuple[str, ...]
    usable: bool

    def renew(self) -> None:
        """Empty it; only while no process of the session is alive."""

    def is_full(self) -> bool:
        """Return whether it holds more than a session may write."""

    def remove(self) -> None:
        """Leave nothing of it behind."""


class Mounted:
    """Tier A: a mount of its own, which limits itself and goes with its namespace."""

    writable: tuple[str, ...] = ()
    usable = True

    def __init__(self, tier: jail.Tier) -> None:
        self._scratch = jail.scratch(tier)
        self.path: str = self._scratch.path

    def renew(self) -> None:
        """Put a fresh one in place."""
        self._scratch.renew()

    def is_full(self) -> bool:
        """Return False: the mount has a size."""
        return False

    def remove(self) -> None:
        """Do nothing."""


class Nowhere:
    """Tier C, and tier B on kernels before 6.2: there is no directory."""

    path = "/"
    writable: tuple[str, ...] = ()
    usable = False

    def renew(self) -> None:
        """Do nothing."""

    def is_full(self) -> bool:
        """Return False."""
        return False

    def remove(self) -> None:
        """Do nothing."""


class Private:
    """Tier B: a directory among the host's temporary files, removed when the worker ends."""

    usable = True

    def __init__(self, user: int) -> None:
        import tempfile

        _sweep(tempfile.gettempdir())
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self.path)
        if user != os.geteuid():
            os.chown(self.path, user, user)
        self.writable: tuple[str, ...] = (self.path,)

    def renew(self) -> None:
        """Delete everything in it."""
        _empty(self.path)

    def is_full(self) -> bool:
        """Return whether files or bytes are too many, or too deep to be counted."""
        count = size = 0
        hidden: list[OSError] = []
        for folder, folders, names in os.walk(self.path, onerror=hidden.append):
            count += len(folders) + len(names)
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
            if count > MAX_ENTRIES or size > MAX_BYTES or len(folder) > MAX_DEPTH:
                return True
        return bool(hidden)

    def remove(self) -> None:
        """Delete it."""
        _empty(self.path)
        with contextlib.suppress(OSError):
            os.rmdir(self.path)


def _lock(path: str) -> int | None:
    """Lock a directory for as long as this process lives; None if somebody else has."""
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _sweep(parent: str) -> None:
    """Remove what workers left that were killed from outside: nobody holds its lock."""
    for name in os.listdir(parent):
        path = f"{parent}/{name}"
        with contextlib.suppress(OSError):
            if (
                not name.startswith(PREFIX)
                or time.time() - os.lstat(path).st_mtime < RECENT_SECONDS
            ):
                continue
            lock = _lock(path)
            if lock is not None:
                _empty(path)
                os.rmdir(path)
                os.close(lock)


def open_folder(tier: jail.Tier, visible: list[str]) -> Folder:
    """Return the directory for a worker's sessions, as far as its tier can give one.

    Args:
        tier: How far this host can confine.
        visible: What programs may read; it decides under which user they can run.
    """
    if tier == "A":
        return Mounted(tier)
    if tier == "C" or (tier == "B" and not _landlock_sees_truncation()):
        return Nowhere()
    return Private(jail.program_user(tier, visible))


def _landlock_sees_truncation() -> bool:
    # Before version 3 a right to read a file is a right to empty it.
    from mlrl_envs.sandbox.jail import landlock

    return landlock.abi() >= 3


def _empty(top: str) -> None:
    """Delete what is in a directory, however deep: subdirectories are lifted to its top first."""
    lifted = 0
    os.chmod(top, 0o700)
    while names := os.listdir(top):
        for name in names:
            place = f"{top}/{name}"
            if os.path.islink(place) or not os.path.isdir(place):  # noqa: PTH114, PTH112
                os.unlink(place)
                continue
            os.chmod(place, 0o700)
            for inner in os.listdir(place):
                lifted += 1
                while os.path.lexists(f"{top}/.lifted-{lifted}"):
                    lifted += 1
                os.rename(f"{place}/{inner}", f"{top}/.lifted-{lifted}")
            os.rmdir(place)

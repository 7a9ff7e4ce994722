"""Directories of sessions: the scratch mount in tier A, a private directory in tier B.

In tier C nothing can restrict writing to one directory, so cells may not write at all. In tier D,
where nothing is confined, cells start in a private directory as in tier B.
"""

# Workers do not import pathlib, to keep their processes small.
# ruff: noqa: PTH101, PTH106, PTH108, PTH208, PTH104

import contextlib
import os
import time
from typing import Protocol

from mlrl_envs.sandbox.jail import confine

__all__ = ["MAX_BYTES", "MAX_ENTRIES", "Folder", "open_folder"]

MAX_BYTES, MAX_ENTRIES = 16 << 20, 1024
MAX_DEPTH = 2048  # characters of a path
PREFIX = "mlrl-session-"
RECENT_SECONDS = 60.0  # a directory younger than this may not be locked yet


class Folder(Protocol):
    """Directory of a session.

    Attributes:
        path: Its path, as cells see it.
        writable: Paths that confinement must leave open for writing.
        usable: Whether files can be written at all.
    """

    path: str
    writable: tuple[str, ...]
    usable: bool

    def renew(self) -> None:
        """Delete its contents; only while no process of the session is running."""

    def is_full(self) -> bool:
        """Return whether it exceeds the limits of a session."""

    def remove(self) -> None:
        """Delete it."""


class MountedFolder:
    """Folder of tier A: a mount with a size limit, which ends with its namespace."""

    writable: tuple[str, ...] = ()
    usable = True

    def __init__(self, tier: confine.Tier) -> None:
        self._scratch = confine.open_scratch(tier)
        self.path: str = self._scratch.path

    def renew(self) -> None:
        """Replace the mount if it was used."""
        self._scratch.renew()

    def is_full(self) -> bool:
        """Return False, because the kernel enforces the limits."""
        return False

    def remove(self) -> None:
        """Do nothing."""


class NoFolder:
    """Folder of tier C, and of tier B on kernels before 6.2: nothing can be written."""

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


class PrivateFolder:
    """Folder of tiers B and D: a directory among the host's temporary files.

    It is deleted when the worker ends.

    Args:
        user: User id that cells run under.
    """

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
        """Delete its contents."""
        _empty(self.path)

    def is_full(self) -> bool:
        """Return whether it holds too many files or bytes, or paths too deep to be counted."""
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
    """Lock a directory until this process ends; return None if another process holds the lock."""
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _sweep(parent: str) -> None:
    """Delete directories that nobody locks: their workers were killed from outside."""
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


def open_folder(tier: confine.Tier, visible: list[str]) -> Folder:
    """Return the folder for the sessions of a worker.

    Args:
        tier: How far this host can confine processes.
        visible: Paths that programs may read; they decide the user id of the programs.
    """
    if tier == "A":
        return MountedFolder(tier)
    if tier == "C" or (tier == "B" and not _landlock_sees_truncation()):
        return NoFolder()
    return PrivateFolder(confine.program_user(tier, visible))


def _landlock_sees_truncation() -> bool:
    # Before version 3, Landlock cannot prevent that a readable file is truncated.
    from mlrl_envs.sandbox.jail import landlock

    return landlock.abi() >= 3


def _empty(top: str) -> None:
    """Delete the contents of a directory of any depth.

    The entries of a subdirectory are first moved to the top, so that no path becomes too long.
    """
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

"""Linux namespaces of a worker: users, mounts, processes, network, IPC, cgroups and host name.

The root directory is a small tmpfs with the standard library and shared libraries, mounted
read-only, and a scratch directory. It is set up once per worker; all programs forked later run in
it.
"""

# Workers do not import pathlib, to keep their processes small.
# ruff: noqa: PTH103, PTH110, PTH112, PTH116, PTH120, PTH123, PTH207, PTH211

import contextlib
import glob
import os
import socket
import sys
from collections.abc import Callable

from mlrl_envs.sandbox.jail.syscalls import call, call_named, die_with_parent, library

__all__ = [
    "SCRATCH",
    "Scratch",
    "enter",
    "isolate_processes",
    "unmount",
    "visible_paths",
]

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
EVERYTHING = NEWUSER | NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWPID | NEWNET
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_BIND, MS_REC, MS_PRIVATE = 1024, 4096, 16384, 1 << 18
# `statvfs` and `mount` use different bits for RELATIME, and the same bits for the other flags.
KEPT_FLAGS = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | 2048
ST_RELATIME, MS_RELATIME = 4096, 1 << 21
MNT_DETACH = 2
INNER_ID, OUTER_ID = 1000, 65534
STAGE = "/tmp"  # noqa: S108  a mount point inside the new namespace
SCRATCH = "/box/tmp"
PACKAGE = "/guest"  # where the package's source is visible until `unmount`
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


def visible_paths() -> list[str]:
    """Return the directories that an interpreter needs: standard library and shared objects."""
    triples = [f"{os.uname().machine}-linux-gnu"]
    candidates = [path for path in sys.path if os.path.exists(path)]
    candidates += [f"{root}/{triple}" for root in ("/lib", "/usr/lib") for triple in triples]
    candidates += ["/lib64", "/usr/lib64", "/usr/share/zoneinfo"]
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if ".so" in path:
                candidates.append(os.path.dirname("/" + path))
    found = sorted({path for path in candidates if os.path.exists(path)}, key=len)
    return [path for path in found if not _below(path, [other for other in found if other != path])]


def _below(path: str, others: list[str]) -> bool:
    return any(path.startswith(other.rstrip("/") + "/") for other in others)


def enter(visible: list[str], package: str | None, release: Callable[[], None]) -> None:
    """Fork, and return in a child that has new namespaces of all kinds.

    The calling process does not return: it waits for the child and exits with its status.

    Args:
        visible: Paths that remain visible, read-only.
        package: A directory that is shown at `PACKAGE`, or None.
        release: Runs in the process that waits, to close what only the child may hold.

    Raises:
        OSError: If the kernel refuses a step.
    """
    identity = os.geteuid(), os.getegid()
    mapper = _start_mapper() if identity[0] == 0 else None
    call_named("unshare", library.unshare, EVERYTHING)
    if mapper is None or not mapper():
        _map_self(*identity)
    child = os.fork()
    if child:
        release()
        _pid, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent()
    _build_root(visible, package)
    with contextlib.suppress(OSError):
        socket.sethostname("sandbox")


def _start_mapper() -> Callable[[], bool]:
    """Fork a process outside the new namespaces that maps two user ids: root, and nobody.

    Mapping more than one's own id needs privileges outside the namespace.

    Returns:
        Function that requests the mapping and returns whether it succeeded.
    """
    target = os.getpid()
    request_read, request_write = os.pipe()
    answer_read, answer_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(request_write)
        os.read(request_read, 1)
        with contextlib.suppress(OSError):
            for kind in ("uid_map", "gid_map"):
                _write(f"/proc/{target}/{kind}", f"0 0 1\n{INNER_ID} {OUTER_ID} 1\n")
            os.write(answer_write, b"y")
        os._exit(0)
    os.close(request_read)
    os.close(answer_write)

    def ask() -> bool:
        os.write(request_write, b"x")
        mapped = os.read(answer_read, 1) == b"y"
        os.close(request_write)
        os.close(answer_read)
        os.waitpid(child, 0)
        return mapped

    return ask


def _map_self(user: int, group: int) -> None:
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {user} 1\n")
    _write("/proc/self/gid_map", f"0 {group} 1\n")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    call_named(
        f"mount {target}",
        library.mount,
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        flags,
        data.encode() or None,
    )


def unmount(path: str) -> None:
    """Detach a mount, even while it is in use."""
    call_named(f"umount {path}", library.umount2, path.encode(), MNT_DETACH)


def _build_root(paths: list[str], package: str | None) -> None:
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    shown = {path: path for path in (*paths, *DEVICES)} | ({PACKAGE: package} if package else {})
    sources = {
        path: os.open(real, os.O_PATH | os.O_CLOEXEC)  # the mount on STAGE hides paths below /tmp
        for path, real in shown.items()
    }
    _mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=4096,mode=755")
    for path, descriptor in sources.items():
        _bind(f"/proc/self/fd/{descriptor}", STAGE + path, writable=path in DEVICES)
        os.close(descriptor)
    for path in paths:
        for pattern in ("site-packages", "dist-packages", "*/site-packages", "*/dist-packages"):
            for place in glob.glob(f"{STAGE}{path}/{pattern}"):
                _mount("tmpfs", place, "tmpfs", MS_RDONLY, "size=4k,mode=555")
    os.makedirs(STAGE + SCRATCH)
    if not os.path.isdir(STAGE + "/tmp"):  # noqa: S108  Python may be installed there
        os.symlink(SCRATCH, STAGE + "/tmp")  # noqa: S108
    os.chdir(STAGE)
    call("pivot_root", b".", b".")
    unmount(".")
    os.chdir("/")
    _mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def _bind(source: str, target: str, *, writable: bool) -> None:
    """Make a file or directory of the host visible at `target`."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    _mount(source, target, None, MS_BIND | MS_REC)
    if not writable:
        flags = os.statvfs(target).f_flag
        kept = flags & KEPT_FLAGS | (MS_RELATIME if flags & ST_RELATIME else 0)
        _mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def isolate_processes() -> None:
    """Fork, and return in a child that is the first process of a new process namespace.

    The calling process does not return: it waits for the child and exits.
    """
    call_named("unshare", library.unshare, NEWPID)
    child = os.fork()
    if child:
        os.closerange(3, 256)
        os.waitpid(child, 0)
        os._exit(0)
    die_with_parent()


class Scratch:
    """Scratch directory of tier A, the only writable one; judge and candidate share it.

    It is replaced as soon as a program has touched it. Deleting its files would not be enough:
    the times of an empty directory still show that an earlier program used it.
    """

    path = SCRATCH

    def __init__(self) -> None:
        self._mount()

    def renew(self) -> None:
        """Mount an empty directory if this one shows a trace of use."""
        if self._trace() != self._untouched:
            unmount(SCRATCH)
            self._mount()

    def _mount(self) -> None:
        options = "size=16m,nr_inodes=1024,mode=1777"
        _mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, options)
        self._untouched = self._trace()

    def _trace(self) -> tuple[int, ...]:
        seen, room = os.stat(SCRATCH), os.statvfs(SCRATCH)
        return seen.st_mtime_ns, seen.st_ctime_ns, seen.st_mode, room.f_ffree, room.f_bfree

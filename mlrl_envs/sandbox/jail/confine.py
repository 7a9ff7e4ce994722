"""Confinement of a worker: detection of the host's tier, and installation of its layers.

Tier A uses user namespaces, Landlock and seccomp; B uses Landlock and seccomp; C uses seccomp;
D confines nothing. A layer cannot be removed once it is installed. If a layer cannot be installed,
the process that needed it exits.
"""

# Workers do not import pathlib, to keep their processes small.
# ruff: noqa: PTH112, PTH114, PTH116, PTH120, PTH208

import contextlib
import ctypes
import os
import resource
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from mlrl_envs.sandbox.jail.syscalls import die_with_parent

__all__ = [
    "Layers",
    "Tier",
    "candidate_seal",
    "confine_zygote",
    "detect_tier",
    "enter_namespaces",
    "isolate_processes",
    "open_scratch",
    "program_user",
    "unmount_package",
    "visible_paths",
]

Tier = Literal["A", "B", "C", "D"]
Layers = list[tuple[str, bool, str]]  # name, whether it is available, detail
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38
CAPABILITY_VERSION = 0x20080522
MAX_THREADS = 64


def detect_tier(maximum: Tier) -> tuple[Tier, Layers]:
    """Return the strongest tier that this host reaches, at most `maximum`, and its layers."""
    layers = _layers()
    works = {name: available for name, available, _detail in layers}
    tier: Tier = "D"
    if works["seccomp"]:
        tier = "C"
        if works["Landlock"]:
            tier = "A" if works["namespaces"] else "B"
    return max(tier, maximum), layers  # "A" is the strongest tier and the smallest letter


def _layers() -> Layers:
    if not sys.platform.startswith("linux"):
        reason = f"not on {sys.platform}"
        return [(name, False, reason) for name in ("namespaces", "Landlock", "seccomp")]
    from mlrl_envs.sandbox.jail import landlock, namespaces, seccomp, syscalls

    known = bool(syscalls.NUMBERS)
    works, detail = _try(lambda: namespaces.enter(namespaces.visible_paths(), None, _nothing))
    filters, filter_detail = _try(lambda: _install_filters(seccomp))
    version = landlock.abi() if known else 0
    return [
        ("namespaces", works, detail or "user, mount, pid, net, ipc, uts, cgroup"),
        ("Landlock", version > 0, f"version {version}" if version else "not in this kernel"),
        ("seccomp", filters, filter_detail or f"filters for {syscalls.ARCHITECTURE}"),
    ]


def _nothing() -> None:
    pass


def _install_filters(seccomp: Any) -> None:  # noqa: ANN401  the module, imported on Linux only
    _no_new_privileges()
    seccomp.zygote_filter().install()
    seccomp.candidate_filter().install()


def _try(attempt: Callable[[], object]) -> tuple[bool, str]:
    """Return whether a call succeeds in a forked process, and the error message if it fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            attempt()
            os.write(writer, b"+")
        except BaseException as error:  # noqa: BLE001  any error means that the layer is not available
            os.write(writer, f"-{error}".encode()[:300])
        finally:
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 400).decode(errors="replace")
    os.close(reader)
    os.waitpid(child, 0)
    return said == "+", "" if said == "+" else said[1:] or "died while trying"


def enter_namespaces(tier: Tier, release: Callable[[], None]) -> None:
    """In tier A, continue in a forked process with namespaces of its own; else do nothing.

    The package is visible there at another path, so the `__path__` of every loaded package of the
    sandbox is changed to it: modules that are imported later are found at the new path.

    Args:
        tier: How far this host can confine processes.
        release: Runs in the process that stays outside, to close what only the new one may hold.
    """
    if tier != "A":
        return
    from mlrl_envs.sandbox.jail import namespaces

    root = sys.modules["mlrl_envs.sandbox"].__path__[0]
    namespaces.enter(namespaces.visible_paths(), root, release)
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith("mlrl_envs.sandbox.") and hasattr(module, "__path__"):
            module.__path__ = [
                path.replace(root, namespaces.PACKAGE, 1) for path in module.__path__
            ]


def unmount_package() -> None:
    """Remove the package's source from the namespace of tier A, after its modules were loaded."""
    from mlrl_envs.sandbox.jail import namespaces

    namespaces.unmount(namespaces.PACKAGE)


def visible_paths(tier: Tier) -> list[str]:
    """Return the paths that programs may read: the standard library and shared objects."""
    if tier == "D":
        return []
    from mlrl_envs.sandbox.jail import namespaces

    return namespaces.visible_paths()


def isolate_processes(tier: Tier) -> None:
    """In tier A, continue in the first process of a new process namespace."""
    if tier == "A":
        from mlrl_envs.sandbox.jail import namespaces

        namespaces.isolate_processes()


class NoScratch:
    """Working directory below tier A, where programs may write nothing: the root directory."""

    path = "/"

    def renew(self) -> None:
        """Do nothing."""


def open_scratch(tier: Tier) -> Any:  # noqa: ANN401
    """Return the working directory of programs, with its `path` and its method `renew`."""
    if tier != "A":
        return NoScratch()
    from mlrl_envs.sandbox.jail import namespaces

    return namespaces.Scratch()


def confine_zygote(tier: Tier, visible: list[str], writable: Sequence[str] = ()) -> None:
    """Drop all privileges of this process and of the processes that it will fork.

    Args:
        tier: How far this host can confine processes.
        visible: Paths that may be read.
        writable: Paths that may be written in tier B; in tier A it is always the scratch mount.
    """
    if tier == "D":
        return
    from mlrl_envs.sandbox.jail import landlock, namespaces, seccomp

    _drop_identity(tier, visible)
    _no_new_privileges()
    die_with_parent()
    if tier in "AB":
        # The rule names the directory above the scratch mount, so that it stays valid when the
        # mount is replaced.
        open_to_writing = [os.path.dirname(namespaces.SCRATCH)] if tier == "A" else [*writable]
        readable, listable = _split_out_packages(visible)
        landlock.restrict([*readable, *namespaces.DEVICES], listable, open_to_writing)
    seccomp.zygote_filter(writes=tier == "A" or bool(writable), private=tier == "A").install()


def candidate_seal(tier: Tier) -> Callable[[], None]:
    """Return the last step of a candidate's confinement, which installs its second filter."""
    if tier == "D":
        return _nothing
    from mlrl_envs.sandbox.jail import seccomp

    install = seccomp.candidate_filter().install
    if tier != "A":
        return install

    def seal() -> None:
        # Below tier A this limit would also count the other processes of the same user.
        resource.setrlimit(resource.RLIMIT_NPROC, (MAX_THREADS, MAX_THREADS))
        install()

    return seal


def program_user(tier: Tier, visible: list[str]) -> int:
    """Return the user id that programs run under.

    It is an unprivileged id if the caller is root and any user may read the visible paths;
    otherwise the id of the caller.
    """
    from mlrl_envs.sandbox.jail import namespaces

    if os.geteuid() == 0 and (tier == "A" or all(map(_open_to_all, visible))):
        return namespaces.INNER_ID if tier == "A" else namespaces.OUTER_ID
    return os.geteuid()


def _drop_identity(tier: Tier, visible: list[str]) -> None:
    from mlrl_envs.sandbox.jail.syscalls import call

    wanted = program_user(tier, visible)
    if wanted != os.geteuid():
        # A namespace in which only one id is mapped has no other id to change to. Then only the
        # capabilities are dropped.
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setresgid(wanted, wanted, wanted)
            os.setresuid(wanted, wanted, wanted)
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    call("capset", ctypes.c_char_p(header), ctypes.c_char_p(bytes(24)))


def _no_new_privileges() -> None:
    from mlrl_envs.sandbox.jail.syscalls import call_named, library

    call_named("prctl", library.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call_named("prctl", library.prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)


def _open_to_all(path: str) -> bool:
    """Return whether any user may enter all directories of a path."""
    while path != "/":
        if not os.stat(path).st_mode & 0o001 and os.path.isdir(path):
            return False
        path = os.path.dirname(path)
    return True


def _split_out_packages(paths: list[str]) -> tuple[list[str], list[str]]:
    """Return the paths to read and the directories that may only be listed.

    Programs must not read third-party packages, but a Landlock right for a directory covers
    everything below it. A directory that has `site-packages` or `dist-packages` at its first or
    second level is therefore replaced by its other entries.
    """
    readable: list[str] = []
    listable: list[str] = []
    for path in paths:
        _split(path, 2, readable, listable)
    return readable, listable


def _split(path: str, depth: int, readable: list[str], listable: list[str]) -> None:
    if not _holds_packages(path, depth):
        readable.append(path)
        return
    listable.append(path)
    for name in os.listdir(path):
        if name not in PACKAGES:
            _split(f"{path}/{name}", depth - 1, readable, listable)


PACKAGES = ("site-packages", "dist-packages")


def _holds_packages(path: str, depth: int) -> bool:
    if depth < 1 or not os.path.isdir(path) or os.path.islink(path):
        return False
    names = os.listdir(path)
    return any(name in PACKAGES for name in names) or any(
        _holds_packages(f"{path}/{name}", depth - 1) for name in names
    )

"""Landlock rules: the files that a process and its children may read or write."""

# Workers do not import pathlib, to keep their processes small.
# ruff: noqa: PTH112

import ctypes
import os
import struct

from mlrl_envs.sandbox.jail.syscalls import call

__all__ = ["abi", "restrict"]

VERSION_QUERY = 1
PATH_BENEATH = 1
READ_FILE, READ_DIR, WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
ALL_TCP, ALL_SCOPES = 3, 3
# Rights in the scratch directory: no creation of device nodes, sockets or pipes.
SCRATCH = (
    WRITE_FILE | READ_FILE | READ_DIR | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13
    | 1 << 14
)  # fmt: skip
ON_FILES = WRITE_FILE | READ_FILE | 1 << 14


def abi() -> int:
    """Return the version of the kernel's Landlock interface, 0 if it has none."""
    try:
        return call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_long(1))
    except OSError:
        return 0


def restrict(readable: list[str], listable: list[str], writable: list[str]) -> None:
    """Permanently restrict file access of this process and its children to these paths.

    The process must have set `no_new_privs`. From version 4 on TCP is refused, too, and from
    version 6 on abstract Unix sockets and signals to processes outside.

    Args:
        readable: Paths below which files may be read and directories listed.
        listable: Paths below which directories may be listed.
        writable: Paths below which files may be created, changed and deleted.

    Raises:
        OSError: If the kernel refuses.
    """
    version = abi()
    handled = (1 << RIGHTS_BY_ABI.get(version, 16)) - 1
    attributes = struct.pack("=Q", handled)
    if version >= 4:
        attributes += struct.pack("=Q", ALL_TCP)
    if version >= 6:
        attributes += struct.pack("=Q", ALL_SCOPES)
    ruleset = call(
        "landlock_create_ruleset",
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(len(attributes)),
        ctypes.c_long(0),
    )
    try:
        for paths, rights in (
            (readable, READ_FILE | READ_DIR),
            (listable, READ_DIR),
            (writable, SCRATCH),
        ):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        call("landlock_restrict_self", ctypes.c_long(ruleset), ctypes.c_long(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= ON_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        call(
            "landlock_add_rule",
            ctypes.c_long(ruleset),
            ctypes.c_long(PATH_BENEATH),
            ctypes.c_char_p(rule),
            ctypes.c_long(0),
        )
    finally:
        os.close(descriptor)

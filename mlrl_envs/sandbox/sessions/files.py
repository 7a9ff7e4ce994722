"""File operations on the directory of a session, performed inside the jail.

Each operation runs in a new confined process, so that no cell can influence it. A path must be
relative and must not leave the directory, not even through symbolic links.
"""

# Workers do not import pathlib, to keep their processes small.
# ruff: noqa: PTH100, PTH103, PTH114, PTH120, PTH106, PTH112, PTH118

import os
import stat
from collections.abc import Iterator

__all__ = ["FILE_OPERATIONS", "operate"]

MAX_PATH = 255
MAX_LISTED = 200


class RefusedError(Exception):
    """The path is invalid, or leads out of the directory."""


def operate(kind: str, path: str, text: str, cap: int) -> tuple[bool, str]:
    """Perform one operation; return whether it succeeded, and the text to show.

    Args:
        kind: One of `FILE_OPERATIONS`.
        path: Path relative to the working directory.
        text: Content to write.
        cap: Number of bytes of a file that are read.
    """
    try:
        return True, _operate(kind, path, text, cap)
    except RefusedError as refusal:
        return False, str(refusal)
    except OSError as error:
        return False, f"{path}: {error.strerror or type(error).__name__}"
    except ValueError as error:  # NUL characters, surrogates
        return False, f"not a path: {error}"


def _operate(kind: str, path: str, text: str, cap: int) -> str:
    if kind == "list":
        return _list(path or ".")
    if kind == "read":
        return _read(_inside(path), cap)
    return _write(_inside(path), text) if kind == "write" else _delete(_inside(path))


FILE_OPERATIONS = ("read", "write", "list", "delete")


def _inside(path: str) -> str:
    """Return the absolute form of a path, with symbolic links in its parents resolved.

    Raises:
        RefusedError: If the path is empty, too long, or not below the working directory.
    """
    if not path or len(path) > MAX_PATH:
        raise RefusedError(f"a path has 1 to {MAX_PATH} characters")
    if path.startswith("/") or ".." in path.split("/"):
        raise RefusedError("a path is relative and stays inside the shared directory")
    root = os.path.realpath(".")
    parent, name = os.path.split(os.path.normpath(path))
    place = os.path.realpath(parent or ".")
    if place != root and not place.startswith(root.rstrip("/") + "/"):
        raise RefusedError("a path stays inside the shared directory; a link in it does not")
    return os.path.join(place, name)


def _read(path: str, cap: int) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("only files can be read")
        return os.read(descriptor, cap).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _write(path: str, text: str) -> str:
    content = memoryview(text.encode("utf-8", "replace"))
    size = len(content)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)
    return f"wrote {size} bytes"


def _list(path: str) -> str:
    top = "." if path in (".", "./") else _inside(path)
    found = sorted(_walk(top))
    shown = [f"{name} ({size} bytes)" for name, size in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        shown.append(f"and {len(found) - MAX_LISTED} more")
    return "\n".join(shown) or "no files"


def _walk(top: str) -> Iterator[tuple[str, int]]:
    root = os.path.realpath(".")
    for folder, _folders, names in os.walk(top):
        for name in names:
            place = os.path.join(os.path.abspath(folder), name)
            yield os.path.relpath(place, root), os.lstat(place).st_size


def _delete(path: str) -> str:
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    else:
        os.unlink(path)  # noqa: PTH108
    return "deleted"

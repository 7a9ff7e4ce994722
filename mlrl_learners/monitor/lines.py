"""Lines of a file at known places, and a text looked for in them."""

import os
import re
from pathlib import Path

__all__ = ["Finder", "LineReader"]

_AS_WRITTEN = re.compile(r"[ !#-\[\]-~]+")  # what JSON does not escape


class LineReader:
    """Reads lines of one file at known places; of a file that is gone it reads nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> "LineReader":
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY)
        except OSError:
            self._descriptor = -1
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def line(self, offset: int, length: int) -> bytes:
        """Return what is at a place."""
        return os.pread(self._descriptor, length, offset) if self._descriptor >= 0 else b""


class Finder:
    """Looks for a text, whatever the case of its letters.

    Most lines are told apart by the longest part of the text that JSON writes as it is, without
    being parsed.
    """

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self._sure = max(_AS_WRITTEN.findall(text.lower()), key=len, default="").encode("ascii")

    def may_be_in(self, line: bytes) -> bool:
        """Return whether a line of JSON may hold the text."""
        return self._sure in line.lower()

    def is_in(self, text: str) -> bool:
        """Return whether a text holds the one looked for."""
        return self._text in text.casefold()

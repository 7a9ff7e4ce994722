"""Cleaning of text that candidates produce.

Text is decoded, shortened, and stripped of control characters; in single lines, memory addresses
and paths are masked, so that equal programs give equal texts.
"""

import re

__all__ = ["clean_line", "clean_output"]

MAX_LINE = 200
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
PATH = re.compile(r"(?:/[\w.+-]+){2,}")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_line(text: str) -> str:
    """Return text as one line of at most `MAX_LINE` characters, addresses and paths masked."""
    flat = CONTROL.sub(" ", " ".join(text[: 4 * MAX_LINE].split()))
    flat = PATH.sub("<path>", ADDRESS.sub("0x...", flat))
    return flat if len(flat) <= MAX_LINE else flat[: MAX_LINE - 3] + "..."


def clean_output(raw: bytes, cap: int) -> str:
    """Return the first `cap` bytes of an output as text; tabs and newlines are kept."""
    return CONTROL.sub("", raw[:cap].decode("utf-8", "replace").replace("\r\n", "\n"))

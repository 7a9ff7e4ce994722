"""Cleaning of text that candidates produce: cut, decoded, no control characters, no addresses."""

import re

__all__ = ["clean_line", "clean_output"]

LINE = 200
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
PATH = re.compile(r"(?:/[\w.+-]+){2,}")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_line(text: str) -> str:
    """Return at most `LINE` characters on one line, memory addresses and paths masked."""
    flat = CONTROL.sub(" ", " ".join(text[: 4 * LINE].split()))
    flat = PATH.sub("<path>", ADDRESS.sub("0x...", flat))
    return flat if len(flat) <= LINE else flat[: LINE - 3] + "..."


def clean_output(raw: bytes, cap: int) -> str:
    """Return standard output as text: cut to `cap` bytes, decoded, tabs and newlines kept."""
    return CONTROL.sub("", raw[:cap].decode("utf-8", "replace").replace("\r\n", "\n"))

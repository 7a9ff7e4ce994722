"""Checks that the diagnostics of functions and of classes have in common."""

import re
from collections.abc import Sequence

from mlrl_envs.parsing.text import printable, shorten
from mlrl_envs.types import Json

__all__ = ["check", "clean_error", "hidden_tests_check"]

MAX_ERROR_CHARS = 300
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")


def check(name: str, status: str, *, passed: bool, details: Sequence[str] = ()) -> Json:
    """Return a check as feedback reads it."""
    return {"name": name, "passed": passed, "status": status, "details": list(details)}


def hidden_tests_check(*, solved: bool) -> Json:
    """Return the check of the hidden tests, which only says whether all of them passed."""
    return check("hidden tests", "all passed" if solved else "not all passed", passed=solved)


def clean_error(error: str) -> str:
    """Return an error text in one line, shortened and without memory addresses."""
    return printable(shorten(_ADDRESS.sub("0x...", " ".join(error.split())), MAX_ERROR_CHARS))

"""Exceptions for failures of a candidate, and their one-line description."""

from collections.abc import Callable

from mlrl_envs.sandbox.wire.printable import clean_line

__all__ = [
    "CandidateError",
    "CandidateGoneError",
    "LoadFailedError",
    "VerdictError",
    "show",
]


class CandidateGoneError(BaseException):
    """The candidate died or broke the protocol; tests cannot catch it as an `Exception`."""


class CandidateError(BaseException):
    """The candidate raised a forbidden exception: `SystemExit`, `GeneratorExit` and the like."""


class VerdictError(Exception):
    """A test failed, and the message is shown unchanged."""


class LoadFailedError(Exception):
    """The source raises while it loads, or does not define an entry point."""


def show(value: object, form: Callable[[object], str] = repr) -> str:
    """Return a value as one short line without memory addresses.

    Args:
        value: The value to show.
        form: Turns the value into text.
    """
    try:
        return clean_line(form(value))
    except Exception:  # noqa: BLE001  `repr` fails for an int of a million digits
        return f"a {type(value).__name__}"

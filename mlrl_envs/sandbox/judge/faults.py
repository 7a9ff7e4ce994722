"""What may go wrong with a candidate, and how it is told in one line."""

from collections.abc import Callable

from mlrl_envs.sandbox.wire.text import clean_line

__all__ = [
    "CandidateError",
    "CandidateGoneError",
    "LoadFailedError",
    "VerdictError",
    "show",
]


class CandidateGoneError(BaseException):
    """The candidate died or broke the protocol. No test can catch this as an `Exception`."""


class CandidateError(BaseException):
    """The candidate raised what no candidate may: SystemExit, GeneratorExit and the like."""


class VerdictError(Exception):
    """A test failed for a reason that is told as it is."""


class LoadFailedError(Exception):
    """The source does not load, or lacks an entry point."""


def show(value: object, form: Callable[[object], str] = repr) -> str:
    """Return a value as one short line without memory addresses."""
    try:
        return clean_line(form(value))
    except Exception:  # noqa: BLE001  an int of a million digits has no repr
        return f"a {type(value).__name__}"

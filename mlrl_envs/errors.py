"""Typed errors: each names the offending value and the fix, in one line.

What a model writes never raises; it scores. These errors are for callers' mistakes
(`InvalidArgumentError` and friends) and for broken infrastructure (`InfraError`).
"""

import difflib
from collections.abc import Iterable

__all__ = [
    "ContractError",
    "DataNotFoundError",
    "EndpointError",
    "InfraError",
    "InvalidActionError",
    "InvalidArgumentError",
    "InvalidDataError",
    "MissingPackageError",
    "MlrlError",
    "ResetNeededError",
    "UnknownNameError",
    "unknown_name",
]


class MlrlError(Exception):
    """Root of every error this project raises on purpose."""


class InvalidArgumentError(MlrlError, ValueError):
    """A caller passed a value outside its documented range."""


class UnknownNameError(InvalidArgumentError, LookupError):
    """A caller named something that does not exist."""


class InvalidActionError(MlrlError, ValueError):
    """A joint action lacks an agent, names a stranger, or holds something that is no `str`."""


class ResetNeededError(MlrlError, RuntimeError):
    """An episode is over, or has not begun: call `reset` first."""


class DataNotFoundError(MlrlError, FileNotFoundError):
    """A data set was found in none of the places it may be in."""


class InvalidDataError(MlrlError, ValueError):
    """A row of a data set does not follow its schema."""


class MissingPackageError(MlrlError, ImportError):
    """An optional package is needed; the message says what to install."""


class ContractError(MlrlError, AssertionError):
    """An environment breaks the contract that `check_env` checks."""


class InfraError(MlrlError, RuntimeError):
    """The machinery failed, not the model: never scored, never turned into a reward."""


class EndpointError(InfraError):
    """A model behind a server could not be asked; the message names the server and the fix."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Build the error for a name that is not known, with the nearest known one.

    Args:
        kind: What was looked up, for the message ("environment", "option").
        name: What the caller wrote.
        known: Every valid name.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(names) or 'none'}"
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}")

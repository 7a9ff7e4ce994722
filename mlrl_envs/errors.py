"""Typed errors; each message names the offending value and the fix in one line.

Actions of agents never raise errors; they are scored. These errors are for mistakes of callers
(`InvalidArgumentError` and its subclasses) and for failures of the infrastructure (`InfraError`).
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
    "ModelNotFoundError",
    "OverloadedError",
    "RefusedError",
    "RemoteEnvError",
    "ResetNeededError",
    "ScorerError",
    "UnknownNameError",
    "unknown_name",
]


class MlrlError(Exception):
    """Base class of all errors of this project."""


class InvalidArgumentError(MlrlError, ValueError):
    """An argument has the wrong type or is outside its documented range."""


class UnknownNameError(InvalidArgumentError, LookupError):
    """An argument names something that does not exist."""


class InvalidActionError(MlrlError, ValueError):
    """A joint action lacks an agent, has an unknown agent, or has a value that is not a `str`."""


class ResetNeededError(MlrlError, RuntimeError):
    """`step` was called outside an episode; call `reset` first."""


class DataNotFoundError(MlrlError, FileNotFoundError):
    """A data set was not found in any of its locations."""


class InvalidDataError(MlrlError, ValueError):
    """A row of a data set does not follow its schema."""


class MissingPackageError(MlrlError, ImportError):
    """An optional package is missing; the message says what to install."""


class ModelNotFoundError(MlrlError, FileNotFoundError):
    """A model is neither a folder, nor a known name, nor on the Hugging Face hub."""


class ContractError(MlrlError, AssertionError):
    """An environment, an actor or a learner violates its contract."""


class InfraError(MlrlError, RuntimeError):
    """The infrastructure failed; the action is not scored and gets no reward."""


class OverloadedError(InfraError):
    """The machine is too busy to run a program; the message says what it waited for and the fix."""


class EndpointError(InfraError):
    """A request to a model server failed; the message names the server and the fix."""


class RemoteEnvError(InfraError):
    """An environment server failed; the message names the server and the fix."""


class RefusedError(RemoteEnvError):
    """An environment server does not answer such a request; the message says why and the fix."""


class ScorerError(InfraError):
    """A text scorer failed; the message names the scorer, its model and the fix."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Build the error for an unknown name; its message suggests the nearest known name.

    Args:
        kind: Kind of the name, for the message ("environment", "option").
        name: The unknown name.
        known: All valid names.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(names) or 'none'}"
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}")

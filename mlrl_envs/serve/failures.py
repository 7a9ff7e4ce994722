"""Errors of single items as messages, and back to the typed errors of `mlrl_envs.errors`.

Kinds: `error` is what the environment raised, `unknown` a session that the server does not hold,
`played` another action for a turn of a linear session, `busy` and `later` ask to try again,
`refused` is a request that the server does not answer.
"""

from typing import Any

from mlrl_envs import errors
from mlrl_envs.errors import InfraError, MlrlError, RefusedError, RemoteEnvError
from mlrl_envs.serve.messages import message

__all__ = ["RequestError", "error_of", "failure_message"]

MAX_CHARS = 1_000


class RequestError(Exception):
    """An item that a server does not answer.

    Args:
        kind: See the module.
        text: What is wrong, and the fix.
        retry: Whether the same item may succeed later.
    """

    def __init__(self, kind: str, text: str, *, retry: bool = False) -> None:
        super().__init__(text)
        self.kind, self.retry = kind, retry


def failure_message(error: BaseException) -> Any:  # noqa: ANN401  a message
    """Return the message about an error; errors of unknown types show their type only.

    Tracebacks, and the texts of errors that are not of this project, stay on the server.
    """
    if isinstance(error, RequestError):
        kind, name, text, retry = error.kind, "", str(error), error.retry
    elif isinstance(error, MlrlError):
        known = type(error).__name__ in errors.__all__
        name = type(error).__name__ if known else _base_of(error)
        kind, text, retry = "error", str(error), False
    else:
        kind, name, retry = "error", "RemoteEnvError", False
        text = f"the server failed with {type(error).__name__}; its log has the details"
    text = text.encode("utf-8", "backslashreplace").decode()[:MAX_CHARS]
    return message("Failure")(kind=kind, type=name, message=text, retry=retry)


def error_of(failure: Any, address: str) -> MlrlError:  # noqa: ANN401  a message
    """Return the error that a message describes.

    Args:
        failure: The message.
        address: The server, for the message of errors that it caused itself.
    """
    if failure.kind == "error" and failure.type in errors.__all__:
        error_type = getattr(errors, failure.type)
        if error_type is not RemoteEnvError and issubclass(error_type, MlrlError):
            found: MlrlError = error_type(failure.message)
            return found
    remote_type = RefusedError if failure.kind == "refused" else RemoteEnvError
    return remote_type(f"environment server {address}: {failure.message}")


def _base_of(error: MlrlError) -> str:
    """Return the nearest class of an error that clients know."""
    names = (base.__name__ for base in type(error).__mro__ if base.__name__ in errors.__all__)
    return next(names, "InfraError" if isinstance(error, InfraError) else "MlrlError")

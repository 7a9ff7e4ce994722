"""Errors of requests, in OpenAI's format."""

from typing import Any

from mlrl_envs.errors import MlrlError

__all__ = ["RequestError", "error_body", "one_line"]

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class RequestError(MlrlError, ValueError):
    """A request that cannot be answered.

    Attributes:
        status: HTTP status code.
        param: Invalid field of the request; None if no single field is.
    """

    def __init__(self, message: str, *, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


def error_body(error: RequestError) -> dict[str, Any]:
    """Return the response body for a failed request."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    message = _joined(str(error))
    fields = {"message": message, "type": TYPES.get(error.status, kind), "param": error.param}
    return {"error": {**fields, "code": error.status}}


def one_line(error: Exception) -> str:
    """Return the message of an error in one line; errors of libraries begin with their type."""
    if isinstance(error, MlrlError):
        return _joined(str(error))
    return _joined(f"{type(error).__name__}: {error}")


def _joined(text: str) -> str:
    return " ".join(text.split())

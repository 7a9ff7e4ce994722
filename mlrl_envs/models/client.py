"""The `openai` client library: requests to a server, and errors that name the cause and the fix.

The library retries failed requests itself; it is imported at the first request. Every failure is an
`EndpointError`.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from mlrl_envs.errors import EndpointError
from mlrl_envs.hosts import is_loopback

if TYPE_CHECKING:
    from openai import OpenAI, OpenAIError

__all__ = [
    "API_KEY_VARIABLE",
    "NOT_OPENAI",
    "Connection",
    "as_list",
    "failure",
    "open_client",
    "send",
]

API_KEY_VARIABLE = "MLRL_API_KEY"
MAX_CAUSE_CHARS = 300
NOT_OPENAI = "check that base_url leads to an OpenAI-compatible server; most want it to end in /v1"
ReplyT = TypeVar("ReplyT")


class Connection(Protocol):
    """Address of a model on a server; `Endpoint` documents the fields."""

    @property
    def base_url(self) -> str:
        """Address of the server."""

    @property
    def model(self) -> str:
        """Name of the model on the server."""

    @property
    def timeout_seconds(self) -> float:
        """Time limit of one request in seconds."""

    @property
    def max_retries(self) -> int:
        """Number of retries after a temporary failure."""


def open_client(endpoint: Connection) -> "OpenAI":
    """Return a client of the server; to be used as a context.

    Raises:
        EndpointError: If the package `openai` is not installed, or the address is invalid.
    """
    try:
        import openai

        from mlrl_envs.models.limited import InvalidURL, LimitedClient
    except ImportError as error:
        raise EndpointError(
            f"endpoint {endpoint.base_url} needs the package 'openai': pip install 'mlrl[endpoint]'"
        ) from error
    try:
        return openai.OpenAI(
            base_url=endpoint.base_url,
            # The library requires a key; servers without authentication accept any.
            api_key=_key(endpoint) or "none",
            timeout=endpoint.timeout_seconds,
            max_retries=endpoint.max_retries,
            http_client=LimitedClient(
                endpoint.timeout_seconds, use_proxies=not _is_of_this_machine(endpoint.base_url)
            ),
        )
    except InvalidURL as error:
        raise failure(endpoint, f"cannot connect: {error}", "correct base_url") from error


def _is_of_this_machine(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:  # the client library says what is wrong
        return False


def _key(endpoint: Connection) -> str:
    return vars(endpoint)["api_key"] or os.environ.get(API_KEY_VARIABLE, "")


def send(endpoint: Connection, request: Callable[[], ReplyT]) -> ReplyT:
    """Return the result of a request of the client library, which may include reading its fields.

    Raises:
        EndpointError: If it fails; the message names the server, the cause and the fix.
    """
    import openai

    try:
        return request()
    except openai.OpenAIError as error:
        raise failure(endpoint, *_cause_and_fix(endpoint, error)) from error
    except (ValueError, RecursionError) as error:  # no valid JSON, or nested too deeply
        raise failure(endpoint, f"unreadable answer: {error}", NOT_OPENAI) from error


def as_list(value: object) -> list[Any]:
    """Return a field that should hold a list; empty if the server sent another type."""
    return value if isinstance(value, list) else []


def failure(endpoint: Connection, cause: str, fix: str) -> EndpointError:
    """Return the error of a request: one line with the server, the cause and the fix."""
    line = " ".join(cause.split())[:MAX_CAUSE_CHARS].rstrip(".")
    if key := _key(endpoint):
        line = line.replace(key, "[key]")
    return EndpointError(f"endpoint {endpoint.base_url}, model {endpoint.model!r}: {line}; {fix}")


_FIXES = {
    400: "check the model's name and what the server accepts",
    401: f"put a valid key into {API_KEY_VARIABLE}",
    403: f"put a valid key into {API_KEY_VARIABLE}",
    404: "check the model's name, and that base_url ends as the server wants it, mostly in /v1",
    422: "check the model's name and what the server accepts",
    429: "lower max_concurrency or raise max_retries",
}


def _cause_and_fix(endpoint: Connection, error: "OpenAIError") -> tuple[str, str]:
    import openai

    if isinstance(error, openai.APITimeoutError):
        cause = f"no answer within {endpoint.timeout_seconds:g} s"
        return cause, "raise timeout_seconds, or lower max_tokens or max_concurrency"
    if isinstance(error, openai.APIConnectionError):
        cause = f"cannot connect: {error.__cause__ or error}"
        return cause, "start the server, or correct base_url"
    if isinstance(error, openai.APIStatusError):
        fix = _FIXES.get(error.status_code, "look into the server's log")
        return f"status {error.status_code}: {_detail(error)}", fix
    return str(error), NOT_OPENAI


def _detail(error: "OpenAIError") -> str:
    """Return the server's error message; servers use different keys for it."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        for key in ("message", "detail", "error"):
            if isinstance(body.get(key), str):
                return cast("str", body[key])
    return str(error)

"""Chat completions over OpenAI's protocol, through the `openai` client library.

Requests run in parallel threads. Every failure becomes an `EndpointError` that names the server,
the cause and the fix. The library retries failed requests itself; it is imported at the first
request. Each answer is one request, because not every server supports several choices (`n`).
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from mlrl_envs.errors import EndpointError
from mlrl_envs.parsing.text import printable
from mlrl_envs.types import Messages

if TYPE_CHECKING:
    from openai import OpenAI, OpenAIError

__all__ = ["API_KEY_VARIABLE", "ChatReply", "complete"]

API_KEY_VARIABLE = "MLRL_API_KEY"
MAX_CAUSE_CHARS = 300


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One answer of a chat model.

    Attributes:
        text: The answer; may be empty.
        finish_reason: `"stop"` if the model ended the answer, `"length"` if it was truncated.
        prompt_tokens: Tokens of the prompt as reported by the server; 0 if not reported.
        completion_tokens: Tokens of the answer as reported by the server; 0 if not reported.
    """

    text: str
    finish_reason: Literal["stop", "length"] = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatSettings(Protocol):
    """Address and sampling options of a chat model; `Endpoint` documents them."""

    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def max_retries(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_p(self) -> float | None: ...
    @property
    def max_concurrency(self) -> int: ...


def complete(
    endpoint: ChatSettings, questions: Sequence[tuple[Messages, int | None]]
) -> list[ChatReply]:
    """Return the answer to each of several conversations, in order.

    Args:
        endpoint: The server, the model and the sampling options.
        questions: Conversations, each with its sampling seed; None leaves the seed to the server.

    Raises:
        EndpointError: If one of the requests fails.
    """
    with _client(endpoint) as client:
        if len(questions) == 1:
            return [_ask(client, endpoint, *questions[0])]
        with ThreadPoolExecutor(min(endpoint.max_concurrency, len(questions))) as pool:
            futures = [pool.submit(_ask, client, endpoint, *question) for question in questions]
            try:
                return [future.result() for future in futures]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _client(endpoint: ChatSettings) -> "OpenAI":
    try:
        import openai
    except ImportError as error:
        raise EndpointError(
            f"endpoint {endpoint.base_url} needs the package 'openai': pip install 'mlrl[endpoint]'"
        ) from error
    return openai.OpenAI(
        base_url=endpoint.base_url,
        # The library requires a key; servers without authentication accept any.
        api_key=_key(endpoint) or "none",
        timeout=endpoint.timeout_seconds,
        max_retries=endpoint.max_retries,
    )


def _key(endpoint: ChatSettings) -> str:
    return vars(endpoint)["api_key"] or os.environ.get(API_KEY_VARIABLE, "")


def _ask(
    client: "OpenAI", endpoint: ChatSettings, messages: Messages, seed: int | None
) -> ChatReply:
    import openai

    request: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{key: printable(text) for key, text in line.items()} for line in messages],
        "max_tokens": endpoint.max_tokens,
        "temperature": endpoint.temperature,
    }
    if endpoint.top_p is not None:
        request["top_p"] = endpoint.top_p
    if seed is not None:
        request["seed"] = seed
    try:
        completion = client.chat.completions.create(**request)
    except openai.OpenAIError as error:
        raise _failure(endpoint, *_cause_and_fix(endpoint, error)) from error
    except ValueError as error:  # the content type is JSON, but the body is not valid JSON
        raise _failure(endpoint, f"unreadable answer: {error}", _NOT_OPENAI) from error
    return _reply(endpoint, completion)


def _reply(endpoint: ChatSettings, completion: object) -> ChatReply:
    # Servers omit different fields; only a choice with a message is required.
    choices = getattr(completion, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    if message is None:
        raise _failure(endpoint, f"no choices in its answer {completion!r}", _NOT_OPENAI)
    usage = getattr(completion, "usage", None)
    was_cut = getattr(choices[0], "finish_reason", None) == "length"
    return ChatReply(
        text=printable(str(getattr(message, "content", None) or "")),
        finish_reason="length" if was_cut else "stop",
        prompt_tokens=int(getattr(usage, "prompt_tokens", None) or 0),
        completion_tokens=int(getattr(usage, "completion_tokens", None) or 0),
    )


_NOT_OPENAI = "check that base_url leads to an OpenAI-compatible server; most want it to end in /v1"
_FIXES = {
    400: "check the model's name and what the server accepts",
    401: f"put a valid key into {API_KEY_VARIABLE}",
    403: f"put a valid key into {API_KEY_VARIABLE}",
    404: "check the model's name, and that base_url ends as the server wants it, mostly in /v1",
    422: "check the model's name and what the server accepts",
    429: "lower max_concurrency or raise max_retries",
}


def _cause_and_fix(endpoint: ChatSettings, error: "OpenAIError") -> tuple[str, str]:
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
    return str(error), _NOT_OPENAI


def _detail(error: "OpenAIError") -> str:
    """Return the server's error message; servers use different keys for it."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        for key in ("message", "detail", "error"):
            if isinstance(body.get(key), str):
                return cast("str", body[key])
    return str(error)


def _failure(endpoint: ChatSettings, cause: str, fix: str) -> EndpointError:
    line = " ".join(cause.split())[:MAX_CAUSE_CHARS].rstrip(".")
    if key := _key(endpoint):
        line = line.replace(key, "[key]")
    return EndpointError(f"endpoint {endpoint.base_url}, model {endpoint.model!r}: {line}; {fix}")

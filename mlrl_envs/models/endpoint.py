"""A chat model behind any server that speaks OpenAI's protocol.

Experts that suggest edits and actors that play are asked through it; what to say to a model, and
what to make of its words, is theirs. The client library `openai` does the talking, waits between
tries and tells failures apart; it is imported at the first question.

One answer is one request: not every server takes `n`.
"""

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from mlrl_envs.errors import EndpointError, InvalidArgumentError, unknown_name
from mlrl_envs.parsing.text import printable

if TYPE_CHECKING:
    from openai import OpenAI, OpenAIError

__all__ = ["API_KEY_VARIABLE", "Endpoint", "Messages", "Reply", "as_endpoint"]

API_KEY_VARIABLE = "MLRL_API_KEY"
MAX_CAUSE_CHARS = 300

Messages = Sequence[Mapping[str, str]]
"""A conversation: mappings with the keys `role` (system, user, assistant) and `content`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model.

    Attributes:
        text: What it wrote; empty where it wrote nothing.
        finish_reason: `"stop"` when it ended by itself, `"length"` when it was cut.
        prompt_tokens: Tokens it read, as the server counts them; 0 where it does not say.
        completion_tokens: Tokens it wrote, likewise.
    """

    text: str
    finish_reason: Literal["stop", "length"] = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Endpoint:
    """A model on a server, and how it is asked.

    Args:
        api_key: None for the environment variable `MLRL_API_KEY`; without either no key is sent
            that means anything. Copies and pickles keep it; it is no field, so that neither the
            repr nor what is written into run directories holds it.

    Attributes:
        base_url: Where the server is; most want it to end in `/v1`.
        model: Name of the model there.
        timeout_seconds: Longest wait for one answer, above 0.
        max_retries: Further tries after a failure that may pass, at least 0.
        max_tokens: Longest answer in tokens, at least 1.
        temperature: At least 0; with 0 the likeliest answer.
        top_p: Share of probability that is drawn from, in (0, 1]; None leaves it to the server.
        seed: What answers are drawn from, at least 0; None leaves it to the server.
        max_concurrency: Most questions in flight, at least 1.
    """

    base_url: str
    model: str
    api_key: InitVar[str | None] = None
    timeout_seconds: float = 60.0
    max_retries: int = 2
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = None
    max_concurrency: int = 8

    def __post_init__(self, api_key: str | None) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value is of another type, or outside its range.
        """
        _check_url(self.base_url)
        if not isinstance(self.model, str) or not self.model:
            raise InvalidArgumentError(f"model must name a model, got {self.model!r}")
        if api_key is not None and not isinstance(api_key, str):
            raise InvalidArgumentError(f"api_key must be a str, got a {type(api_key).__name__}")
        object.__setattr__(self, "api_key", api_key)  # under its own name `replace` keeps it
        for name, least in (("max_retries", 0), ("max_tokens", 1), ("max_concurrency", 1)):
            _check_int(name, getattr(self, name), least)
        if self.seed is not None:
            _check_int("seed", self.seed, 0)
        _check_float("timeout_seconds", self.timeout_seconds, above=0.0)
        _check_float("temperature", self.temperature, least=0.0)
        if self.top_p is not None:
            _check_float("top_p", self.top_p, above=0.0, most=1.0)

    def chat(self, messages: Messages) -> str:
        """Return the model's answer to one conversation.

        Raises:
            EndpointError: As `complete`.
        """
        return self.chat_many([messages])[0]

    def chat_many(self, batch: Sequence[Messages]) -> list[str]:
        """Return the model's answer to each of many conversations, in order.

        Raises:
            EndpointError: As `complete`.
        """
        return [reply.text for reply in self.complete(batch)]

    def complete(
        self, batch: Sequence[Messages], *, seeds: Sequence[int] | None = None
    ) -> list[Reply]:
        """Return the model's answer to each of many conversations, in order, with its counts.

        Args:
            batch: The conversations; one that is asked twice is answered twice.
            seeds: For each, what its answer is drawn from; None for `seed`.

        Raises:
            EndpointError: If the server cannot be reached, refuses, or answers with something
                else; if one answer fails, none is returned.
        """
        if not batch:
            return []
        drawn = [self.seed] * len(batch) if seeds is None else seeds
        with _client(self) as client:
            return _ask_all(client, self, list(zip(batch, drawn, strict=True)))


def as_endpoint(value: object) -> Endpoint:
    """Return an `Endpoint`, made of a mapping if need be.

    A mapping holds fields of `Endpoint`, without the key: options are written into run
    directories, where no key belongs.

    Raises:
        UnknownNameError: If a key of the mapping is no field.
        InvalidArgumentError: If the value is neither, or a field is missing or outside its range.
    """
    if isinstance(value, Endpoint):
        return value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"an endpoint is an Endpoint, or a mapping with base_url and model, got {value!r}"
        )
    if "api_key" in value:
        raise InvalidArgumentError(
            f"options are kept in run directories: put the key into {API_KEY_VARIABLE}, not here"
        )
    known = [each.name for each in fields(Endpoint)]
    for name in value:
        if name not in known:
            raise unknown_name("endpoint option", name, known)
    for name in ("base_url", "model"):
        if name not in value:
            raise InvalidArgumentError(f"an endpoint needs {name}, got {dict(value)!r}")
    return Endpoint(**value)


def _client(endpoint: Endpoint) -> "OpenAI":
    try:
        import openai
    except ImportError as error:
        raise EndpointError(
            f"endpoint {endpoint.base_url} needs the package 'openai': pip install 'mlrl[endpoint]'"
        ) from error
    return openai.OpenAI(
        base_url=endpoint.base_url,
        # The library insists on a key; servers without keys take any.
        api_key=_key(endpoint) or "none",
        timeout=endpoint.timeout_seconds,
        max_retries=endpoint.max_retries,
    )


def _key(endpoint: Endpoint) -> str:
    return vars(endpoint)["api_key"] or os.environ.get(API_KEY_VARIABLE, "")


def _ask_all(
    client: "OpenAI", endpoint: Endpoint, questions: Sequence[tuple[Messages, int | None]]
) -> list[Reply]:
    if len(questions) == 1:
        return [_ask(client, endpoint, *questions[0])]
    with ThreadPoolExecutor(min(endpoint.max_concurrency, len(questions))) as pool:
        futures = [pool.submit(_ask, client, endpoint, *question) for question in questions]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ask(client: "OpenAI", endpoint: Endpoint, messages: Messages, seed: int | None) -> Reply:
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
        raise _failure(endpoint, *_why(endpoint, error)) from error
    except ValueError as error:  # a body that says it is JSON, and is not
        raise _failure(endpoint, f"unreadable answer: {error}", _NOT_OPENAI) from error
    return _reply(endpoint, completion)


def _reply(endpoint: Endpoint, completion: object) -> Reply:
    # Servers differ in what they leave out; only a choice with a message is insisted on.
    choices = getattr(completion, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    if message is None:
        raise _failure(endpoint, f"no choices in its answer {completion!r}", _NOT_OPENAI)
    usage = getattr(completion, "usage", None)
    was_cut = getattr(choices[0], "finish_reason", None) == "length"
    return Reply(
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


def _why(endpoint: Endpoint, error: "OpenAIError") -> tuple[str, str]:
    """Return what went wrong, and the fix."""
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
    """Return the server's own words, wherever it put them."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        for key in ("message", "detail", "error"):
            if isinstance(body.get(key), str):
                return cast("str", body[key])
    return str(error)


def _failure(endpoint: Endpoint, cause: str, fix: str) -> EndpointError:
    line = " ".join(cause.split())[:MAX_CAUSE_CHARS].rstrip(".")
    if key := _key(endpoint):
        line = line.replace(key, "[key]")
    return EndpointError(f"endpoint {endpoint.base_url}, model {endpoint.model!r}: {line}; {fix}")


def _check_url(url: object) -> None:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgumentError(
            f"base_url must be like http://127.0.0.1:8000/v1 or https://..., got {url!r}"
        )
    if parts.username or parts.password:
        raise InvalidArgumentError(f"base_url must hold no password: use {API_KEY_VARIABLE}")


def _check_int(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} must be an int of at least {least}, got {value!r}")


def _check_float(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = cast("float", value)
    if not is_number or not math.isfinite(number) or not above < number or not least <= number:
        bound = f"above {above:g}" if math.isfinite(above) else f"at least {least:g}"
        raise InvalidArgumentError(f"{name} must be a number {bound}, got {value!r}")
    if number > most:
        raise InvalidArgumentError(f"{name} must be at most {most:g}, got {value!r}")

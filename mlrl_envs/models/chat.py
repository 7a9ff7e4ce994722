"""Chat completions over OpenAI's protocol, through the `openai` client library.

Requests run in parallel threads. Each answer is one request, because not every server supports
several choices (`n`). Failures are those of `mlrl_envs.models.client`.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mlrl_envs.models.client import NOT_OPENAI, Connection, failure, open_client, send
from mlrl_envs.parsing.text import printable
from mlrl_envs.types import Messages

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["ChatReply", "complete"]


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


class ChatSettings(Connection, Protocol):
    """Address and sampling options of a chat model; `Endpoint` documents them."""

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
    with open_client(endpoint) as client:
        if len(questions) == 1:
            return [_ask(client, endpoint, *questions[0])]
        with ThreadPoolExecutor(min(endpoint.max_concurrency, len(questions))) as pool:
            futures = [pool.submit(_ask, client, endpoint, *question) for question in questions]
            try:
                return [future.result() for future in futures]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _ask(
    client: "OpenAI", endpoint: ChatSettings, messages: Messages, seed: int | None
) -> ChatReply:
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
    completion = send(endpoint, lambda: client.chat.completions.create(**request))
    return _reply(endpoint, completion)


def _reply(endpoint: ChatSettings, completion: object) -> ChatReply:
    # Servers omit different fields; only a choice with a message is required.
    choices = getattr(completion, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    if message is None:
        raise failure(endpoint, f"no choices in its answer {completion!r}", NOT_OPENAI)
    usage = getattr(completion, "usage", None)
    was_cut = getattr(choices[0], "finish_reason", None) == "length"
    return ChatReply(
        text=printable(str(getattr(message, "content", None) or "")),
        finish_reason="length" if was_cut else "stop",
        prompt_tokens=int(getattr(usage, "prompt_tokens", None) or 0),
        completion_tokens=int(getattr(usage, "completion_tokens", None) or 0),
    )

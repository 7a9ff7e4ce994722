"""Chat completions over OpenAI's protocol, through the `openai` client library.

Tool calls of an answer become text after its content, `<tool_call>{...}</tool_call>`, which is how
environments read them.

Requests run in parallel threads. Each answer is one request, because not every server supports
several choices (`n`). Failures are those of `mlrl_envs.models.client`.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mlrl_envs.models.client import NOT_OPENAI, Connection, as_list, failure, open_client, send
from mlrl_envs.parsing.text import printable
from mlrl_envs.tools.calls import write_call
from mlrl_envs.types import Json, Messages

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["ChatReply", "complete"]

NOT_TEXT = "set the server to answer with text alone"
_TEXT_PARTS = ("text", "output_text")
_MOST_TOKENS = 2**53


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One answer of a chat model.

    Attributes:
        text: The answer, with its tool calls as text; may be empty.
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
    endpoint: ChatSettings,
    questions: Sequence[tuple[Messages, int | None]],
    tools: Sequence[Mapping[str, Json]] = (),
) -> list[ChatReply]:
    """Return the answer to each of several conversations, in order.

    Args:
        endpoint: The server, the model and the sampling options.
        questions: Conversations, each with its sampling seed; None leaves the seed to the server.
        tools: JSON schemas of the tools that the model may call.

    Raises:
        EndpointError: If one of the requests fails.
    """
    with open_client(endpoint) as client:
        if len(questions) == 1:
            return [_ask(client, endpoint, *questions[0], tools)]
        with ThreadPoolExecutor(min(endpoint.max_concurrency, len(questions))) as pool:
            futures = [
                pool.submit(_ask, client, endpoint, *question, tools) for question in questions
            ]
            try:
                return [future.result() for future in futures]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _ask(
    client: "OpenAI",
    endpoint: ChatSettings,
    messages: Messages,
    seed: int | None,
    tools: Sequence[Mapping[str, Json]],
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
    if tools:
        request["tools"] = list(tools)
    return send(endpoint, lambda: _reply(endpoint, client.chat.completions.create(**request)))


def _reply(endpoint: ChatSettings, completion: object) -> ChatReply:
    # Servers omit different fields; only a choice with a message is required.
    choices = as_list(getattr(completion, "choices", None)) or [None]
    message = getattr(choices[0], "message", None)
    if not hasattr(message, "content"):
        raise failure(endpoint, f"no choices in its answer {completion!r}", NOT_OPENAI)
    usage = getattr(completion, "usage", None)
    was_cut = getattr(choices[0], "finish_reason", None) == "length"
    return ChatReply(
        text=printable("\n".join(filter(None, [_content(endpoint, message), *_calls(message)]))),
        finish_reason="length" if was_cut else "stop",
        prompt_tokens=_count(getattr(usage, "prompt_tokens", None)),
        completion_tokens=_count(getattr(usage, "completion_tokens", None)),
    )


def _content(endpoint: ChatSettings, message: object) -> str:
    """Return the text of an answer, which some servers send as a list of parts."""
    content = getattr(message, "content", None)
    if content is None:
        return ""
    parts = list(map(_part, content)) if isinstance(content, list) else [content]
    texts = [text for text in parts if isinstance(text, str)]
    if len(texts) < len(parts):
        raise failure(endpoint, f"content that is no text in its answer: {content!r}", NOT_TEXT)
    return "".join(texts)


def _part(part: object) -> object:
    """Return the text of a part of an answer; None if it is no text, such as an image."""
    if not isinstance(part, Mapping) or part.get("type") not in _TEXT_PARTS:
        return None
    return part.get("text")


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value < _MOST_TOKENS else 0


def _calls(message: object) -> list[str]:
    """Return the text of each tool call of an answer, whatever a server put into its fields."""
    texts = []
    for call in as_list(getattr(message, "tool_calls", None)):
        function = getattr(call, "function", None)
        arguments = getattr(function, "arguments", None) or ""
        if not isinstance(arguments, str):  # some servers send the object itself
            arguments = json.dumps(arguments, default=str)
        texts.append(write_call(str(getattr(function, "name", None) or ""), arguments))
    return texts

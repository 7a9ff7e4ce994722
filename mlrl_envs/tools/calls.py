"""Tool calls and answers in messages of agents.

A call is `<tool_call>{"name": "...", "parameters": {...}}</tool_call>`, an answer is
`<answer>...</answer>`. Parsing accepts any text in linear time and raises no errors; a malformed
call is returned with the reason. The set of tools is defined in `toolbox`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mlrl_envs.types import Json

__all__ = ["FORGED", "MAX_CALLS_READ", "Message", "ToolCall", "read_message"]

MAX_CALLS_READ = 32  # the rest of a longer message is one malformed call
MAX_CALL_CHARS = 100_000
FORGED = "only the environment writes tool results"
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_RESULT = "<tool_result"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as written by an agent.

    Attributes:
        name: The tool; empty if the call is malformed.
        parameters: Its arguments.
        error: Why it is malformed; empty if it is not.
    """

    name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """The parsed message of an agent.

    Attributes:
        calls: The calls, in order.
        answer: The answer; None if there is none, or if there are several different ones.
        answer_error: Why `answer` is None although the message has answer tags.
    """

    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    answer_error: str = ""


def read_message(text: str) -> Message:
    """Parse the calls and the answer of a message."""
    bodies, rest = _cut(text, _OPEN, _CLOSE, MAX_CALLS_READ)
    calls = [_read_call(body) for body in bodies]
    if _RESULT in rest:
        calls.append(ToolCall("", error=FORGED))
    answers, _ = _cut(rest, "<answer>", "</answer>", MAX_CALLS_READ)
    known = list(dict.fromkeys(answer.strip() for answer in answers if answer is not None))
    if None in answers:
        return Message(tuple(calls), None, "an <answer> is not closed")
    if len(known) > 1:
        return Message(tuple(calls), None, "more than one answer")
    if known == [""]:
        return Message(tuple(calls), None, "the answer is empty")
    return Message(tuple(calls), known[0] if known else None)


def _cut(text: str, opening: str, closing: str, most: int) -> tuple[list[str | None], str]:
    """Return the texts between tags, None for an unclosed tag, and the remaining text."""
    found: list[str | None] = []
    rest: list[str] = []
    place = 0
    while (start := text.find(opening, place)) >= 0:
        rest.append(text[place:start])
        inner = start + len(opening)
        end = text.find(closing, inner)
        if end < 0 or len(found) >= most:
            found.append(None)
            return found, "".join(rest)
        found.append(text[inner:end])
        place = end + len(closing)
    return found, "".join((*rest, text[place:]))


def _read_call(body: str | None) -> ToolCall:
    if body is None:
        return ToolCall("", error=f"a {_OPEN} is not closed, or there are too many")
    if len(body) > MAX_CALL_CHARS:
        return ToolCall("", error=f"a call has at most {MAX_CALL_CHARS} characters")
    try:
        return _checked(json.loads(body))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        return ToolCall("", error=f"not JSON: {where}: {error.msg}")
    except (ValueError, RecursionError):
        return ToolCall("", error="not JSON: numbers or brackets out of bounds")


def _checked(value: object) -> ToolCall:
    if isinstance(value, dict) and not value.keys() - {"name", "parameters"}:
        name, parameters = value.get("name"), value.get("parameters", {})
        if isinstance(name, str) and isinstance(parameters, dict):
            return ToolCall(name, parameters)
    return ToolCall("", error='a call is {"name": ..., "parameters": {...}}')

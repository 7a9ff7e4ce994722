"""Tool calls and answers in messages of agents.

A call is `<tool_call>{"name": "...", "parameters": {...}}</tool_call>`, an answer is
`<answer>...</answer>`. `"arguments"`, the name in most chat templates (Hermes, Qwen), may stand in
place of `"parameters"`. Its value may be a JSON text of an object as well: OpenAI's protocol writes
it so, and models imitate the protocol. Parsing accepts any text in linear time and raises no
errors; a malformed call is returned with the reason. The set of tools is defined in `toolbox`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mlrl_envs.parsing.text import printable
from mlrl_envs.types import Json

__all__ = ["FORGED", "MAX_CALLS_READ", "Message", "ToolCall", "read_message", "write_call"]

MAX_CALLS_READ = 32  # the rest of a longer message is one malformed call
MAX_CALL_CHARS = 100_000
FORGED = "only the environment writes tool results"
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_PARAMETERS, _ARGUMENTS = "parameters", "arguments"
_RESULT = "<tool_result"
_FORMAT = 'a call is {"name": ..., "parameters": {...}}'


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


def write_call(name: str, arguments: str) -> str:
    """Return the text of a call in the form of OpenAI's protocol, as `read_message` reads it.

    Args:
        name: The tool.
        arguments: JSON text of an object; empty for no arguments. Any other text is kept in the
            call, which is malformed then.
    """
    is_object = _object_of(arguments or "{}") is not None
    given = (arguments or "{}") if is_object else json.dumps(arguments, ensure_ascii=False)
    body = f'{{"name": {json.dumps(name, ensure_ascii=False)}, "{_ARGUMENTS}": {given}}}'
    # The tag can only occur in strings, where JSON may escape the slash.
    escaped = body.replace(_CLOSE, _CLOSE.replace("/", r"\/"))
    return printable(f"{_OPEN}{escaped}{_CLOSE}")


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
    if not isinstance(value, dict) or value.keys() - {"name", _PARAMETERS, _ARGUMENTS}:
        return ToolCall("", error=_FORMAT)
    if value.keys() >= {_PARAMETERS, _ARGUMENTS}:
        return ToolCall("", error='a call has "parameters" or "arguments", not both')
    name, given = value.get("name"), value.get(_PARAMETERS, value.get(_ARGUMENTS, {}))
    if isinstance(value.get(_ARGUMENTS), str):
        given = _object_of(value[_ARGUMENTS])
        if given is None:
            return ToolCall("", error='the text of "arguments" is not a JSON object')
    if not isinstance(name, str) or not isinstance(given, dict):
        return ToolCall("", error=_FORMAT)
    return ToolCall(name, given)


def _object_of(text: str) -> dict[str, Json] | None:
    """Return the object of a JSON text; None if it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

"""Tools of chat requests, and calls of them in messages and answers, as OpenAI's API has them.

Models read tools through their chat template, and write calls into the text of answers,
`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, see `mlrl_learners.policies.chat_tools`.
Not covered: a call that must come (`tool_choice` other than none and auto), which would need
constrained decoding, and calls in other formats.
"""

import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from mlrl_learners.serving.errors import RequestError
from mlrl_learners.serving.values import Fields

__all__ = ["calls_of", "read_tools", "text_of_calls"]

MOST_TOOLS = 128  # OpenAI's limit
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)

Tool = Mapping[str, Any]


def read_tools(fields: Fields) -> tuple[Tool, ...]:
    """Return the tools of a request; none with `tool_choice: none`.

    Raises:
        RequestError: If a tool is no function with a name, or a call must come.
    """
    value, choice = fields.take("tools"), fields.take("tool_choice")
    if choice not in (None, "none", "auto"):
        raise RequestError("tool_choice must be none or auto here", param="tool_choice")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MOST_TOOLS:
        raise RequestError(f"tools must be a list of at most {MOST_TOOLS}", param="tools")
    for number, tool in enumerate(value):
        if not _is_function(tool):
            raise RequestError(
                f"tools[{number}] must have the type function and a function with a name",
                param="tools",
            )
    return () if choice == "none" else tuple(value)


def _is_function(tool: object) -> bool:
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        return False
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return isinstance(name, str) and bool(name)


def text_of_calls(message: Mapping[str, Any], place: str) -> str:
    """Return the text of the calls of an assistant's message; empty if it has none.

    Args:
        message: The message.
        place: Its name in errors.

    Raises:
        RequestError: If a call has no name, or its arguments are no JSON object.
    """
    calls = message.get("tool_calls") or []
    try:
        found = [
            {"name": str(each["function"]["name"]), "arguments": _arguments(each["function"])}
            for each in calls
        ]
    except (TypeError, KeyError, ValueError, RecursionError):
        reason = f"{place}.tool_calls must be functions with a name and arguments in JSON"
        raise RequestError(reason, param="messages") from None
    # As templates write them, with the same spaces and line breaks.
    texts = (json.dumps(each, ensure_ascii=False) for each in found)
    return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


def calls_of(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of an answer without its calls, and the calls as OpenAI's API has them.

    What is no call of a name with an object of arguments stays in the text.
    """
    calls: list[dict[str, Any]] = []

    def taken(found: re.Match[str]) -> str:
        try:
            call = json.loads(found[1])
            function = {"name": call["name"], "arguments": json.dumps(_arguments(call))}
        except (KeyError, ValueError, RecursionError):
            return found[0]
        if not isinstance(function["name"], str):
            return found[0]
        calls.append({"id": f"call_{secrets.token_hex(12)}", "type": "function"})
        calls[-1]["function"] = function
        return ""

    rest = _CALL.sub(taken, text)
    return (rest.strip() if calls else text), calls


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; raise a ValueError if they are no object."""
    given = call.get("arguments", call.get("parameters", {}))
    arguments = json.loads(given) if isinstance(given, str) else given
    if not isinstance(arguments, dict):
        raise ValueError(f"no object: {arguments!r}")
    return arguments

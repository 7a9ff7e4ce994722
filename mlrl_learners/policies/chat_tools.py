"""Checks whether a chat template describes tools, and the calls that environments read.

Environments read calls `<tool_call>{...}</tool_call>` in the text of answers. Chat templates of
Hermes and Qwen ask for them; others, such as those of Llama and Mistral, have formats of their own.
"""

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["problem_with_tools"]

TAGS = ("<tool_call>", "</tool_call>")
_CALL = re.compile(r"<tool_call>\s*\{")
_QUESTION = {"role": "user", "content": "x"}


def problem_with_tools(tokenizer: Any, variables: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Return why a model cannot call tools by its chat template; empty if it can.

    Args:
        tokenizer: A `transformers` tokenizer.
        variables: Variables of the chat template, with the schemas of the `tools`, at least one.
    """
    if tokenizer.chat_template is None:
        return "it has no chat template"
    names = [tool["function"]["name"] for tool in variables["tools"]]
    shown = _render(tokenizer, [_QUESTION], variables)
    if not all(name in shown for name in names):
        return "its chat template has no tools"
    call = {"type": "function", "function": {"name": names[0], "arguments": {}}}
    answer = {"role": "assistant", "content": "", "tool_calls": [call]}
    written = _render(tokenizer, [_QUESTION, answer], variables).removeprefix(shown)
    if not _CALL.search(written):
        return f"calls of its chat template are not {TAGS[0]}{{...}}{TAGS[1]}, which is read here"
    special = {each.content for each in tokenizer.added_tokens_decoder.values() if each.special}
    if special.intersection(TAGS):
        return f"{TAGS[0]} is a special token of it, and texts of answers have no special tokens"
    return ""


def _render(tokenizer: Any, messages: list[dict[str, Any]], variables: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Return the text of messages; empty if the template refuses them."""
    from jinja2.exceptions import TemplateError

    try:
        text: str = tokenizer.apply_chat_template(messages, tokenize=False, **variables)
    except (TemplateError, TypeError):  # TypeError: some templates join arguments to a text
        return ""
    return text

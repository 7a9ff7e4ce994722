"""Token ids of messages and plain texts of others, without special tokens of their writers.

Every message is text of somebody else, the system message included: only the chat template yields
special tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.errors import ConfigError
from mlrl_learners.policies.chat import ChatFormat
from mlrl_learners.types.conversations import Message

__all__ = ["encode_messages", "encode_text"]

MARK = "\ue000"  # text of a message while it is tried whether the template shows it


def encode_text(tokenizer: Any, text: str) -> list[int]:  # noqa: ANN401  transformers ships no types
    """Return the ids of a prompt without a template, with what the tokenizer puts around texts."""
    ids: list[int] = tokenizer(_writable(text), split_special_tokens=True)["input_ids"]
    return ids


def encode_messages(
    tokenizer: Any,  # noqa: ANN401
    messages: Sequence[Mapping[str, str]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[int]:
    """Return the ids of a conversation up to the beginning of the next answer.

    Args:
        tokenizer: A `transformers` tokenizer; without a chat template, messages are separated by
            blank lines.
        messages: Each with `role` and `content`. If the template has no system role, a system
            message precedes the text of the first other message.
        tools: Schemas of tools that the chat template describes; without special tokens in them.

    Raises:
        ConfigError: If the chat template refuses the conversation, or leaves out a result of a
            tool.
    """
    from jinja2.exceptions import TemplateError

    chat = [(line["role"], _writable(line["content"])) for line in messages]
    if tokenizer.chat_template is None:
        return encode_text(tokenizer, "\n\n".join(text for _, text in chat))
    form = ChatFormat(tokenizer, template_kwargs={"tools": list(tools)} if tools else {})
    try:
        if not _takes_results(form, chat):
            raise ConfigError("the model's chat template shows no messages of the role tool")
        return form.ids(chat if _takes_system(form, chat) else _without_system(chat))
    except TemplateError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"the model's chat template refuses the messages: {reason}") from None


def _takes_results(form: ChatFormat, chat: Sequence[Message]) -> bool:
    """Return whether the template shows the results of tools, if there are any."""
    if all(role != "tool" for role, _ in chat):
        return True
    shown = form.render([(role, MARK if role == "tool" else text) for role, text in chat])
    return shown.count(MARK) >= sum(role == "tool" for role, _ in chat)


def _takes_system(form: ChatFormat, chat: Sequence[Message]) -> bool:
    """Return whether the template shows the system message, if there is one."""
    from jinja2.exceptions import TemplateError

    (role, _), *others = chat
    if role != "system":
        return True
    try:
        return MARK in form.render([(role, MARK), *others])
    except TemplateError:
        return False


def _without_system(chat: Sequence[Message]) -> list[Message]:
    """Return the conversation with the system message at the beginning of the message after it."""
    (_, system), *others = chat
    if not others:
        return [("user", system)]
    (role, text), *rest = others
    return [(role, f"{system}\n\n{text}"), *rest]


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # replaces lone surrogates

"""Chat formatting: the token ids of a prompt from an observation.

Covers chat templates with a system role, without one, and models without a template. Only the
template and the user's system prompt yield special tokens: text in an observation, which agents and
data write, that looks like a special token is tokenized as text.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlrl_learners.types.conversations import Conversation, Message, chat_messages

__all__ = ["ChatFormat", "SpecialTokens", "end_of_turn", "eos_ids"]

CUT_MARK = "\n[...]\n"
CONTENT = "\ue000"  # placeholder of a message while a template is rendered
ANCHOR = "\n"


@dataclass(frozen=True)
class ChatFormat:
    """Formats an observation as the last user message of a chat.

    Attributes:
        tokenizer: A `transformers` tokenizer. Without a chat template text is tokenized as it is.
        system_prompt: System message; precedes the first message if the template has no system
            role. Special tokens in it are recognised.
        max_prompt_tokens: Longer prompts lose their oldest turns, then the middle of the
            observation; None for no limit.
        template_kwargs: Further variables of the chat template.
        conversation: Whether the earlier turns of a `Conversation` are messages, too.
    """

    tokenizer: Any
    system_prompt: str | None = None
    max_prompt_tokens: int | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    conversation: bool = False

    def encode(self, observation: str) -> list[int]:
        """Return the token ids of the prompt, at least one, without padding."""
        earlier = observation.earlier if isinstance(observation, Conversation) else ()
        messages = chat_messages(observation, earlier if self.conversation else ())
        ids = self.ids(messages)
        limit = self.max_prompt_tokens
        while limit is not None and len(ids) > limit and earlier and self.conversation:
            earlier = earlier[1:]
            messages = chat_messages(observation, earlier)
            ids = self.ids(messages)
        text = messages[-1][1]
        while limit is not None and len(ids) > limit and text:
            text = _cut_middle(text, keep_share=0.95 * limit / len(ids))
            ids = self.ids([("user", text)])
        return ids or [self.tokenizer.bos_token_id or self.tokenizer.eos_token_id or 0]

    def reads(self, variable: str) -> bool:
        """Return whether the chat template mentions a variable."""
        template = str(self.tokenizer.chat_template or "")
        return re.search(rf"\b{re.escape(variable)}\b", template) is not None

    @functools.cached_property
    def num_fixed_tokens(self) -> int:
        """Number of tokens of the template and the system prompt, which are in every prompt."""
        return len(self.ids([("user", "")]))

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of messages up to the beginning of the next answer.

        Without a chat template only the last message is read.

        Args:
            messages: Role and text of each, at least one.

        Raises:
            jinja2.exceptions.TemplateError: If the chat template refuses the messages.
        """
        rendered = self.render(messages)
        roles = tuple(role for role, _ in messages)
        is_blank = not any(text.strip() for _, text in messages)
        if is_blank or self._specials.find(rendered) == self._own_specials(roles):
            ids: list[int] = self.tokenizer(rendered, add_special_tokens=self._adds_specials)[
                "input_ids"
            ]
            return ids
        return self._ids_apart(messages)

    def _ids_apart(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a prompt whose messages are tokenized without special tokens."""
        cores = [text.strip() for _, text in messages]  # templates may strip whitespace around
        marked = []
        for number, (role, text) in enumerate(messages):
            before, _, after = text.partition(cores[number])
            mark = f"{self._content}{number}{self._content}"
            marked.append((role, f"{before}{mark}{after}" if cores[number] else text))
        mark_of = re.compile(f"{self._content}(\\d+){self._content}")
        first, *others = mark_of.split(self.render(marked))
        ids = self._tokens(first) if first else []
        for place, other in zip(others[::2], others[1::2], strict=True):
            ids += self._tokens(cores[int(place)], is_first=not ids, split_special_tokens=True)
            ids += self._tokens(other, is_first=False)
        start, end = self._frame()
        return [*start, *ids, *end]

    def _tokens(self, text: str, *, is_first: bool = True, **options: bool) -> list[int]:
        """Return the ids of a part of a prompt, without tokens that frame a whole text.

        Some tokenizers insert a space before any text; a line break before the part absorbs it.
        """
        first, both, alone = (
            self.tokenizer(each, add_special_tokens=False, **options)["input_ids"]
            for each in (ANCHOR, ANCHOR + text, text)
        )
        follows = not is_first and both[: len(first)] == first
        found: list[int] = both[len(first) :] if follows else alone
        return found

    def _frame(self) -> tuple[list[int], list[int]]:
        """Return the ids that the tokenizer adds before and after a prompt without a template."""
        if not self._adds_specials:
            return [], []
        whole, text = (
            self.tokenizer("x", add_special_tokens=adds)["input_ids"] for adds in (True, False)
        )
        places = range(len(whole) - len(text) + 1)
        start = next((at for at in places if whole[at : at + len(text)] == text), len(whole))
        return whole[:start], whole[start + len(text) :]

    @property
    def _adds_specials(self) -> bool:
        return self.tokenizer.chat_template is None  # templates contain their own

    @functools.cached_property
    def _specials(self) -> "SpecialTokens":
        return SpecialTokens(self.tokenizer)

    def _own_specials(self, roles: tuple[str, ...]) -> list[str]:
        """Special tokens in every prompt with messages of these roles."""
        if roles not in self._specials_of:
            rendered = self.render([(role, self._content) for role in roles])
            self._specials_of[roles] = self._specials.find(rendered)
        return self._specials_of[roles]

    @functools.cached_property
    def _specials_of(self) -> dict[tuple[str, ...], list[str]]:
        return {}

    @functools.cached_property
    def _content(self) -> str:
        """A text that occurs neither in the template nor in the system prompt."""
        content = CONTENT
        while content in f"{self.tokenizer.chat_template} {self.system_prompt}":
            content += CONTENT
        return content

    def render(self, messages: Sequence[Message]) -> str:
        """Return the text of the prompt of `ids`."""
        text = messages[-1][1]
        if self.tokenizer.chat_template is None:
            return f"{self.system_prompt}\n\n{text}" if self.system_prompt else text
        chat = [{"role": role, "content": content} for role, content in messages]
        if not self.system_prompt:
            return self._apply(chat)
        rendered = self._try_system([{"role": "system", "content": self.system_prompt}, *chat])
        if rendered is not None and self.system_prompt.strip() in rendered:  # may be stripped
            return rendered
        first = {"role": "user", "content": f"{self.system_prompt}\n\n{messages[0][1]}"}
        return self._apply([first, *chat[1:]])

    def _try_system(self, messages: list[dict[str, str]]) -> str | None:
        """Render the messages; return None if the template raises an error for a system message."""
        from jinja2.exceptions import TemplateError

        try:
            return self._apply(messages)
        except TemplateError:
            return None

    def _apply(self, messages: list[dict[str, str]]) -> str:
        rendered: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self.template_kwargs
        )
        return rendered


def end_of_turn(tokenizer: Any) -> int | None:  # noqa: ANN401 - transformers ships no types
    """Return the id that ends an answer, or None if the tokenizer has none.

    It is the first special token after an assistant's message in the chat template, which may
    differ from the tokenizer's `eos_token`; without such a token it is the latter.
    """
    from jinja2.exceptions import TemplateError

    stated: int | None = tokenizer.eos_token_id
    if tokenizer.chat_template is None:
        return stated
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": CONTENT}]
    try:
        rendered = tokenizer.apply_chat_template(messages, tokenize=False)
    except TemplateError:
        return stated
    _, is_there, after = rendered.rpartition(CONTENT)
    found = SpecialTokens(tokenizer).find(after) if is_there else []
    return tokenizer.convert_tokens_to_ids(found[0]) if found else stated


def eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Return all ids that end an answer, sorted; chat models often have more than one."""
    ids = {tokenizer.eos_token_id, model.config.eos_token_id, end_of_turn(tokenizer)}
    if getattr(model, "generation_config", None) is not None:
        stated = model.generation_config.eos_token_id
        ids |= set(stated) if isinstance(stated, list) else {stated}
    return tuple(sorted(int(number) for number in ids if isinstance(number, int)))


class SpecialTokens:
    """Finds the special tokens that a tokenizer recognises in a text.

    Args:
        tokenizer: A `transformers` tokenizer.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401 - transformers ships no types
        special = [each for each in tokenizer.added_tokens_decoder.values() if each.special]
        names = {*tokenizer.all_special_tokens, *(each.content for each in special)} - {""}
        longest_first = sorted(names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if names else None
        backend = getattr(tokenizer, "backend_tokenizer", None)
        is_late = any(each.normalized for each in special)  # matched after normalization
        self._normalizer = getattr(backend, "normalizer", None) if is_late else None

    def find(self, text: str) -> list[str]:
        """Return the special tokens in a text and in its normalized form."""
        if self._pattern is None:
            return []
        found: list[str] = self._pattern.findall(text)
        if self._normalizer is not None:
            found += self._pattern.findall(self._normalizer.normalize_str(text))
        return found


def _cut_middle(text: str, *, keep_share: float) -> str:
    kept = int(len(text) * keep_share) - len(CUT_MARK)
    if kept < 2:
        return ""
    return text[: kept // 2] + CUT_MARK + text[-(kept - kept // 2) :]

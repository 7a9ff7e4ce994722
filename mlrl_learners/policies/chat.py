"""From an observation to the token ids that a model reads.

Covers chat templates with a system role, without one, and models with no template at all.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["ChatFormat"]

CUT_MARK = "\n[...]\n"


@dataclass(frozen=True)
class ChatFormat:
    """Wraps an observation as the one user message of a conversation.

    Attributes:
        tokenizer: A `transformers` tokenizer. Without a chat template the text is read as it is.
        system_prompt: Said first; put before the observation where the template has no system role.
        max_prompt_tokens: Longer prompts lose the middle of their observation; None for no limit.
    """

    tokenizer: Any
    system_prompt: str | None = None
    max_prompt_tokens: int | None = None

    def encode(self, observation: str) -> list[int]:
        """Return the prompt's token ids, at least one, without padding."""
        text = observation.encode("utf-8", "replace").decode()  # lone surrogates have no tokens
        ids = self._tokenize(self._render(text))
        limit = self.max_prompt_tokens
        while limit is not None and len(ids) > limit and text:
            text = _cut_middle(text, keep_share=0.95 * limit / len(ids))
            ids = self._tokenize(self._render(text))
        return ids

    def _render(self, text: str) -> str:
        if self.tokenizer.chat_template is None:
            return f"{self.system_prompt}\n\n{text}" if self.system_prompt else text
        if not self.system_prompt:
            return self._apply([{"role": "user", "content": text}])
        user = {"role": "user", "content": text}
        rendered = self._try_system([{"role": "system", "content": self.system_prompt}, user])
        if rendered is not None and self.system_prompt in rendered:
            return rendered
        return self._apply([{"role": "user", "content": f"{self.system_prompt}\n\n{text}"}])

    def _try_system(self, messages: list[dict[str, str]]) -> str | None:
        """Render, or return None where the template refuses a system message."""
        from jinja2.exceptions import TemplateError

        try:
            return self._apply(messages)
        except TemplateError:
            return None

    def _apply(self, messages: list[dict[str, str]]) -> str:
        rendered: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return rendered

    def _tokenize(self, rendered: str) -> list[int]:
        has_template = self.tokenizer.chat_template is not None  # it writes its own special tokens
        ids: list[int] = self.tokenizer(rendered, add_special_tokens=not has_template)["input_ids"]
        if not ids:
            ids = [self.tokenizer.bos_token_id or self.tokenizer.eos_token_id or 0]
        return ids


def _cut_middle(text: str, *, keep_share: float) -> str:
    kept = int(len(text) * keep_share) - len(CUT_MARK)
    if kept < 2:
        return ""
    return text[: kept // 2] + CUT_MARK + text[-(kept - kept // 2) :]

"""Texts that end an answer, recognised in its last tokens."""

from collections.abc import Sequence
from typing import Any

__all__ = ["StopTexts"]

MARGIN = 8  # tokens without text, and the one whose leading space a decoder removes


class StopTexts:
    """Recognises stop texts while tokens are sampled, and removes them from answers.

    Args:
        tokenizer: A `transformers` tokenizer.
        stops: The texts; none of them empty.

    Attributes:
        num_tokens: Number of last tokens that contain any of the texts: a token has at least a
            byte of text.
    """

    def __init__(self, tokenizer: Any, stops: Sequence[str]) -> None:  # noqa: ANN401 - untyped
        self._tokenizer, self._stops = tokenizer, tuple(stops)
        self.num_tokens = MARGIN + max((len(text.encode()) for text in stops), default=0)

    def found(self, tails: Sequence[Sequence[int]]) -> list[bool]:
        """Return for the last tokens of each answer whether they contain a stop text."""
        texts: list[str] = self._tokenizer.batch_decode(
            [list(tail) for tail in tails], skip_special_tokens=True
        )
        return [any(stop in text for stop in self._stops) for text in texts]

    def cut(self, text: str) -> str:
        """Return the text before the first stop text."""
        places = [text.find(stop) for stop in self._stops]
        return text[: min((place for place in places if place >= 0), default=len(text))]

    def num_kept(self, token_ids: Sequence[int]) -> int:
        """Return the number of tokens up to the one that completes a stop text; all without one."""
        if not self._stops or not self.found([token_ids])[0]:
            return len(token_ids)
        low, high = 0, len(token_ids)  # the first `high` tokens contain a stop text
        while high - low > 1:
            middle = (low + high) // 2
            if self.found([token_ids[:middle]])[0]:
                high = middle
            else:
                low = middle
        return high

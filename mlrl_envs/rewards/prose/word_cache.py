"""Verdicts on words, kept for as many words as fit: half of what a look at `lru_cache` costs."""

from collections.abc import Callable
from typing import TypeVar

__all__ = ["WordCache"]

MAX_WORD_CHARS, MAX_WORDS = 64, 16_384

ValueT = TypeVar("ValueT")


class WordCache(dict[str, ValueT]):
    """What a pure function says of each word, asked for as `kept[word]`.

    A word of more than 64 characters is judged each time; where 16,384 are kept, all are dropped.

    Args:
        judge: The function.
    """

    def __init__(self, judge: Callable[[str], ValueT]) -> None:
        super().__init__()
        self.judge = judge

    def __missing__(self, word: str) -> ValueT:
        verdict = self.judge(word)
        if len(word) <= MAX_WORD_CHARS:
            if len(self) >= MAX_WORDS:
                self.clear()
            self[word] = verdict
        return verdict

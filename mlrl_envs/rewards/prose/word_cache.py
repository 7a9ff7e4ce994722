"""Bounded cache of results per word, with half of the overhead of `functools.lru_cache`."""

from collections.abc import Callable
from typing import TypeVar

__all__ = ["WordCache"]

MAX_WORD_CHARS, MAX_WORDS = 64, 16_384

ValueT = TypeVar("ValueT")


class WordCache(dict[str, ValueT]):
    """Results of a pure function of words, looked up as `cache[word]`.

    Words of more than 64 characters are not cached. When 16,384 words are cached, all are dropped.

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

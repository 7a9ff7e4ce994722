"""Texts split into words and sentences, cached for the measures that need them.

A text is measured several times in one step, and instructions by every attempt at their task.
Callers must not modify the returned objects.
"""

import re
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from mlrl_envs.parsing.text import blanked, words
from mlrl_envs.rewards.prose.english import SENTENCE_END, outline_of
from mlrl_envs.rewards.prose.sequences import ngrams

__all__ = [
    "MAX_CHARS",
    "SIGMA",
    "ParsedDocument",
    "distinct_runs",
    "parse_document",
    "tokens_of",
    "words_of",
]

MAX_CHARS = 20_000  # longer texts are truncated; bounds the time of scoring
SIGMA = "\u03a3"  # its lower case depends on neighbours, possibly in another sentence

_SENTENCE = re.compile(r"[^.!?]*[.!?]+[\"'\u201d\u2019)]*|[^.!?]+$")


class ParsedDocument(NamedTuple):
    """The words of a text by sentence.

    Attributes:
        sentences: The sentences, each with its number of words.
        words: The lower-case words of all sentences.
        outline: The outline of the words (see `outline_of`), with an end mark after each sentence.
    """

    sentences: list[tuple[str, int]]
    words: list[str]
    outline: bytes


@lru_cache(maxsize=64)
def parse_document(text: str) -> ParsedDocument:
    """Split a text into sentences and words."""
    sentences = _SENTENCE.findall(text)
    said: list[str] = []
    marked: list[str] = []
    sizes: list[int] = []
    for found in _words_by_sentence(text, sentences):
        said += found
        marked += found
        marked.append(SENTENCE_END)
        sizes.append(len(found))
    return ParsedDocument(list(zip(sentences, sizes, strict=True)), said, outline_of(marked))


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return parse_document(text).words if SIGMA not in text else words(text)


@lru_cache(maxsize=64)
def tokens_of(text: str) -> list[str]:
    """Return the white-space tokens of a text."""
    return text.split()


@lru_cache(maxsize=64)
def distinct_runs(text: str, size: int) -> frozenset[tuple[str, ...]]:
    """Return the distinct n-grams of `size` words of a text."""
    return frozenset(ngrams(words_of(text), size))


def _words_by_sentence(text: str, sentences: list[str]) -> list[list[str]]:
    if not text.isascii():
        return list(map(words, sentences))
    blank, ends = blanked(text), accumulate(map(len, sentences))  # the sentences partition the text
    return [blank[end - len(one) : end].split() for one, end in zip(sentences, ends, strict=True)]

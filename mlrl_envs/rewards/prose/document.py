"""A text as it is read once, for all the measures that ask for its words, sentences and grammar.

Readings are kept: a text is met a few times while it is judged, and what an agent was told by every
attempt at its task. Nothing that is returned here may be changed.
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

MAX_CHARS = 20_000  # longer texts are judged by their beginning; keeps scoring linear and quick
SIGMA = "\u03a3"  # the one letter whose lower case hangs on its neighbours, here of other sentences

_SENTENCE = re.compile(r"[^.!?]*[.!?]+[\"'\u201d\u2019)]*|[^.!?]+$")


class ParsedDocument(NamedTuple):
    """What there is to know of a text's words, sentence by sentence.

    Attributes:
        sentences: The sentences, and how many words each has.
        words: The lower-case words of all of them.
        outline: The outline of the words (see `outline_of`), each sentence with an end.
    """

    sentences: list[tuple[str, int]]
    words: list[str]
    outline: bytes


@lru_cache(maxsize=64)
def parse_document(text: str) -> ParsedDocument:
    """Read a text."""
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
    """Return what stands between white space."""
    return text.split()


@lru_cache(maxsize=64)
def distinct_runs(text: str, size: int) -> frozenset[tuple[str, ...]]:
    """Return the runs of `size` words of a text, each once."""
    return frozenset(ngrams(words_of(text), size))


def _words_by_sentence(text: str, sentences: list[str]) -> list[list[str]]:
    if not text.isascii():
        return list(map(words, sentences))
    blank, ends = blanked(text), accumulate(map(len, sentences))  # the sentences are all of it
    return [blank[end - len(one) : end].split() for one, end in zip(sentences, ends, strict=True)]

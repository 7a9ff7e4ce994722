"""ROUGE overlap of a text with its source: shared content words, and copied runs.

The values equal those of Google's `rouge-score` exactly, with the stemmer of `rouge-score-rs` (the
same as nltk's), and the source is parsed only once. Where meaning counts, function words are
removed from both texts first, because any two English texts share half of them.

Source: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mlrl_envs.errors import MissingPackageError
from mlrl_envs.parsing.text import words
from mlrl_envs.rewards.prose.document import MAX_CHARS, words_of
from mlrl_envs.rewards.prose.english import FUNCTION_WORDS
from mlrl_envs.rewards.prose.sequences import (
    GAP,
    Grams,
    Lines,
    count_grams,
    count_shared,
    lay_out,
    letters_of,
    longest_common,
    runs_of,
    spell,
)
from mlrl_envs.rewards.prose.word_cache import WordCache

if TYPE_CHECKING:
    from rouge_score_rs.tokenizers import DefaultTokenizer

__all__ = ["Copying", "Overlap", "check_rouge", "copying", "near_share", "overlap", "pairs_share"]

MAX_SENTENCES = 64  # longer texts are truncated

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[a-z0-9]+")  # ROUGE's definition of a word


class Overlap(NamedTuple):
    """Shared content words of a text and its source, stemmed.

    Attributes:
        precision: Share of the text's words that the source contains, with multiplicity.
        common: Number of shared words.
        source_words: Number of words of the source.
        order: Share of the shared words that are in the order of the source.
    """

    precision: float
    common: float
    source_words: int
    order: float


class Copying(NamedTuple):
    """Share of a text that occurs in another, function words included.

    Attributes:
        runs: Share of its four-word runs that the other text contains.
        in_step: Share of its words in the longest common subsequence with the other text.
    """

    runs: float
    in_step: float


def check_rouge() -> None:
    """Check that ROUGE can be computed.

    Raises:
        MissingPackageError: If its package is not installed.
    """
    _stemmer()


def overlap(text: str, source: str) -> Overlap:
    """Return the overlap of content words of a text with its source.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    content, known = _content(text), _content_of_source(source)
    common = count_shared(count_grams(content), known.grams)
    precision, order = _share(common, len(content)), 0.0
    if common:
        order = _share(longest_common(known.line, content), len(content)) / precision
    size = max(known.size, 1)  # avoids a division by zero
    return Overlap(precision, _share(common, known.size) * size, size, order)


def copying(text: str, other: str, *, least_in_step: float = 0.0) -> Copying:
    """Return how much of a text is copied from another.

    Args:
        text: The text of an agent.
        other: The text that it must not copy.
        least_in_step: If `in_step` must be below this share, it is returned as 0.0.
    """
    spelled, in_step = _spelled(text, other), 0.0
    if _share(len(spelled) - spelled.count(GAP), len(spelled)) >= least_in_step:
        in_step = _share(longest_common(_line(other), _words(text)), len(spelled))
    return Copying(_shared_runs(text, other, 4), in_step)


def pairs_share(text: str, other: str) -> float:
    """Return the share of a text's word bigrams that another text contains."""
    return _shared_runs(text, other, 2)


def near_share(text: str, source: str, *, least: float = 0.0) -> float:
    """Return the share of a text's words that occur, in order, in one sentence of the source.

    Each sentence is compared with its nearest sentence in the source, so that copies are detected
    regardless of the order of sentences and of replaced words.

    Args:
        text: The text of an agent.
        source: The text that it should retell.
        least: If the share must be below this value, 0.0 is returned.
    """
    few = sum(map(text[:MAX_CHARS].count, ".!?\n")) < MAX_SENTENCES  # then no sentence is cut off
    if few and _known_share(_words(text), _vocabulary(source)) < least:
        return 0.0
    known = _sentences_of_source(source)
    total = near = 0.0
    for sentence in _sentences(text):
        size = len(sentence)
        total += size
        near += size * (longest_common(known, sentence) / size)
    return near / total if total else 0.0


class _Content(NamedTuple):
    size: int
    grams: Grams
    line: Lines


def _share(part: int, whole: int) -> float:
    return part / max(whole, 1)


def _known_share(said: Sequence[str], known: frozenset[str]) -> float:
    """Return the share of words in `known`, an upper bound of the common subsequence."""
    return _share(sum(map(known.__contains__, said)), len(said))


def _shared_runs(text: str, other: str, size: int) -> float:
    spelled = _spelled(text, other)
    runs = runs_of(spelled, size)
    shared = count_shared(count_grams(runs), _runs(other, size)) if runs else 0
    return _share(shared, len(spelled) - size + 1)


# A text is measured several times in one step, a source by every attempt at its task.
@lru_cache(maxsize=64)
def _words(text: str) -> list[str]:
    text = text[:MAX_CHARS]
    return words_of(text) if _is_plain(text) else _WORD.findall(text.lower())


@lru_cache(maxsize=64)
def _letters(text: str) -> dict[str, str]:
    return letters_of(_words(text))


@lru_cache(maxsize=64)
def _spelled(text: str, other: str) -> str:
    return spell(_words(text), _letters(other))


@lru_cache(maxsize=64)
def _runs(text: str, size: int) -> Grams:
    return count_grams(runs_of(_spelled(text, text), size))


def _is_plain(text: str) -> bool:
    """Return whether ROUGE's words equal the words of the other measures."""
    return text.isascii() and "_" not in text


@lru_cache(maxsize=64)
def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(_words(text))


@lru_cache(maxsize=64)
def _line(text: str) -> Lines:
    return lay_out([_words(text)])


@lru_cache(maxsize=64)
def _sentences_of_source(source: str) -> Lines:
    return lay_out(_sentences(source))


@lru_cache(maxsize=64)
def _content_of_source(source: str) -> _Content:
    content = _content(source)
    return _Content(len(content), count_grams(content), lay_out([content]))


def _sentences(text: str) -> list[list[str]]:
    read = words if _is_plain(text) else lambda part: _WORD.findall(part.lower())
    parts = map(read, _BREAK.split(text[:MAX_CHARS]))
    return [part for part in parts if part][:MAX_SENTENCES]


def _content(text: str) -> list[str]:
    return list(filter(None, map(_CONTENT_STEMS.__getitem__, _words(text))))


def _content_stem(word: str) -> str:
    if len(word) < 2 or word in FUNCTION_WORDS:
        return ""
    return str(_stemmer().tokenize(word)[0])


_CONTENT_STEMS = WordCache(_content_stem)


@lru_cache(maxsize=1)
def _stemmer() -> "DefaultTokenizer":
    try:
        from rouge_score_rs.tokenizers import DefaultTokenizer
    except ImportError as error:
        raise MissingPackageError(
            "grounded rewards of writing need rouge-score-rs: pip install 'mlrl[tasks]', "
            'or pass reward="paper"'
        ) from error
    return DefaultTokenizer(use_stemmer=True)

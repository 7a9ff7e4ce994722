"""What a text shares with its source, by ROUGE: the words that carry meaning, and copied runs.

The figures are those of Google's `rouge-score` to the last bit, with the stems of `rouge-score-rs`
(the same as nltk's) and without reading a source anew for each text. Where meaning counts, function
words are taken out of both texts before: any two English texts share half of theirs.

Source: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mlrl_envs.errors import MissingPackageError
from mlrl_envs.parsing import words
from mlrl_envs.rewards.english import FUNCTION_WORDS
from mlrl_envs.rewards.sequences import (
    Grams,
    Lines,
    count_grams,
    count_shared,
    lay_out,
    longest_common,
    ngrams,
)
from mlrl_envs.rewards.text_quality import MAX_CHARS, ngrams_of, words_of

if TYPE_CHECKING:
    from rouge_score_rs.tokenizers import DefaultTokenizer

__all__ = ["Copying", "Overlap", "check_rouge", "copying", "near_share", "overlap"]

MAX_SENTENCES = 64  # longer texts are judged by their beginning

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[a-z0-9]+")  # what ROUGE itself takes for a word


@dataclass(frozen=True)
class Overlap:
    """How a text and its source share content words, stemmed.

    Attributes:
        precision: Share of the text's words that the source has too, each as often as there.
        common: How many these are.
        source_words: How many the source has.
        order: Share of the common words that stand in the order of the source.
    """

    precision: float
    common: float
    source_words: int
    order: float


@dataclass(frozen=True)
class Copying:
    """How much of a text stands in another, word by word, function words included.

    Attributes:
        pairs: Share of its pairs of neighbouring words that the other has too.
        runs: Share of its runs of four words that the other has too.
        in_step: Share of its words that stand in the other in the same order, whatever lies
            between them.
    """

    pairs: float
    runs: float
    in_step: float


def check_rouge() -> None:
    """Make sure that ROUGE can be computed.

    Raises:
        MissingPackageError: If its package is not installed.
    """
    _stemmer()


def overlap(text: str, source: str) -> Overlap:
    """Compare what a text says with what its source says.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    content, known = _content(text), _content_of_source(source)
    common = count_shared(count_grams(content), known.grams)
    precision, order = _share(common, len(content)), 0.0
    if common:
        order = _share(longest_common(known.line, content), len(content)) / precision
    size = max(known.grams.size, 1)  # what says nothing counts as a word
    return Overlap(precision, _share(common, known.grams.size) * size, size, order)


def copying(text: str, other: str, *, least_in_step: float = 0.0) -> Copying:
    """Compare a text with one that it must not copy.

    Args:
        text: What an agent wrote.
        other: What it must not copy.
        least_in_step: Where fewer words than this share can be in step, that is 0.0 at once.
    """
    said, in_step = _words(text), 0.0
    if _known_share(said, _vocabulary(other)) >= least_in_step:
        in_step = _share(longest_common(_line(other), said), len(said))
    return Copying(_shared_runs(text, other, 2), _shared_runs(text, other, 4), in_step)


def near_share(text: str, source: str, *, least: float = 0.0) -> float:
    """Return the share of a text's words that stand, in order, in one sentence of the source.

    Each sentence is compared with the source's nearest, so that a copy is seen whatever its
    sentences' order and whichever words were swapped.

    Args:
        text: What an agent wrote.
        source: What it should retell.
        least: Where it must be smaller than this, it is 0.0 at once.
    """
    few = sum(map(text[:MAX_CHARS].count, ".!?\n")) < MAX_SENTENCES  # so that all are looked at
    if few and _known_share(_words(text), _vocabulary(source)) < least:
        return 0.0
    known = _sentences_of_source(source)
    total = near = 0.0
    for sentence in _sentences(text):
        size = len(sentence)
        total += size
        near += size * (longest_common(known, sentence) / size)
    return near / total if total else 0.0


@dataclass(frozen=True, slots=True)
class _Content:
    grams: Grams
    line: Lines


def _share(part: int, whole: int) -> float:
    return part / max(whole, 1)


def _known_share(said: Sequence[str], known: frozenset[str]) -> float:
    """Return the share of words that are known at all: as many can be in step, or fewer."""
    return _share(sum(map(known.__contains__, said)), len(said))


def _shared_runs(text: str, other: str, size: int) -> float:
    runs = _runs(text, size)
    return _share(count_shared(runs, _runs(other, size)), runs.size)


# A text is met a few times while it is judged, a source by every attempt at its task.
@lru_cache(maxsize=64)
def _words(text: str) -> list[str]:
    text = text[:MAX_CHARS]
    return words_of(text) if _is_plain(text) else _WORD.findall(text.lower())


@lru_cache(maxsize=64)
def _runs(text: str, size: int) -> Grams:
    text = text[:MAX_CHARS]
    return ngrams_of(text, size) if _is_plain(text) else count_grams(ngrams(_words(text), size))


def _is_plain(text: str) -> bool:
    """Return whether ROUGE's words are the words that others of our measures read."""
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
    return _Content(count_grams(content), lay_out([content]))


def _sentences(text: str) -> list[list[str]]:
    read = words if _is_plain(text) else lambda part: _WORD.findall(part.lower())
    parts = map(read, _BREAK.split(text[:MAX_CHARS]))
    return [part for part in parts if part][:MAX_SENTENCES]


def _content(text: str) -> list[str]:
    return [_stem(word) for word in _words(text) if len(word) > 1 and word not in FUNCTION_WORDS]


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    return str(_stemmer().tokenize(word)[0])


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

"""Shared n-grams and longest common subsequences of two sequences of words.

A text is spelled in the letters of another one: each word of the other has a letter, and unknown
words are gaps. Shared n-grams are then substrings between the gaps.

Several lines of words are stored in the bits of one integer. Longest common subsequences with all
lines then take five integer operations per word.

Source: H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, repeat
from typing import NamedTuple

__all__ = [
    "GAP",
    "Grams",
    "Lines",
    "count_grams",
    "count_shared",
    "lay_out",
    "letters_of",
    "longest_common",
    "ngrams",
    "runs_of",
    "spell",
]

GAP = "\0"  # a word without a letter


class Grams(NamedTuple):
    """The n-grams of a text.

    Attributes:
        distinct: The distinct n-grams.
        counts: How often each occurs; None if none is repeated.
    """

    distinct: frozenset[Hashable]
    counts: Mapping[Hashable, int] | None


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of words as bits of one integer; a free bit after each line absorbs its carry.

    Attributes:
        places: For each word, the bits of its positions.
        spans: For each line, its bits.
        bits: The bits of all lines.
    """

    places: Mapping[str, int]
    spans: tuple[int, ...]
    bits: int


def ngrams(tokens: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return every n-gram of `size` tokens, in order."""
    return list(zip(*[tokens[i:] for i in range(size)], strict=False))


def letters_of(words: Iterable[str]) -> dict[str, str]:
    """Return a letter for each word."""
    return dict(zip(words, map(chr, count(1)), strict=False))


def spell(words: Iterable[str], letters: Mapping[str, str]) -> str:
    """Return a sequence of words as letters, with gaps for words without one."""
    return "".join(map(letters.get, words, repeat(GAP)))


def runs_of(spelled: str, size: int) -> list[str]:
    """Return every run of `size` letters without a gap, in order."""
    return [
        piece[start : start + size]
        for piece in _pieces(size).findall(spelled)
        for start in range(len(piece) - size + 1)
    ]


def count_grams(grams: Sequence[Hashable]) -> Grams:
    """Count n-grams of any type."""
    distinct = frozenset(grams)
    return Grams(distinct, None if len(distinct) == len(grams) else Counter(grams))


def count_shared(grams: Grams, known: Grams) -> int:
    """Return the number of n-grams shared with `known`, with multiplicity."""
    common = grams.distinct & known.distinct
    # Without repetitions on one side multiplicity has no effect.
    if grams.counts is None or known.counts is None:
        return len(common)
    return sum(min(grams.counts[gram], known.counts[gram]) for gram in common)


def lay_out(lines: Iterable[Sequence[str]]) -> Lines:
    """Prepare lines of words for `longest_common`."""
    places: dict[str, int] = {}
    spans: list[int] = []
    bit = 1
    for line in lines:
        start = bit
        for word in line:
            places[word] = places.get(word, 0) | bit
            bit <<= 1
        spans.append(bit - start)
        bit <<= 1
    return Lines(places, tuple(spans), sum(spans))


def longest_common(lines: Lines, words: Iterable[str]) -> int:
    """Return the length of the longest subsequence that `words` shares with one of the lines."""
    bits = free = lines.bits
    for places in filter(None, map(lines.places.get, words)):
        met = free & places
        free = ((free + met) | (free ^ met)) & bits
    taken = free ^ bits
    return max(map(int.bit_count, map(taken.__and__, lines.spans)), default=0)


@lru_cache(maxsize=8)
def _pieces(size: int) -> re.Pattern[str]:
    return re.compile(f"[^{GAP}]{{{size},}}")

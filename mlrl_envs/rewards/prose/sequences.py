"""What two texts share as rows of words: runs of neighbours, and longest common subsequences.

A row is spelled in the letters of another: each word of that one has a letter, and what it does not
know is a gap. Runs that both may share are then pieces of one string, between its gaps.

Lines of words are laid side by side in the bits of one whole number. A subsequence is then found
with five operations on that number for each word of the other text, in all lines at once.

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

GAP = "\0"  # any word that has no letter


class Grams(NamedTuple):
    """The n-grams of a text.

    Attributes:
        distinct: Each of them once.
        counts: How often each occurs; None where none is repeated.
    """

    distinct: frozenset[Hashable]
    counts: Mapping[Hashable, int] | None


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of words in the bits of one number; behind each line a bit is free to take a carry.

    Attributes:
        places: For each word the bits where it stands.
        spans: For each line its bits.
        bits: Those of all lines.
    """

    places: Mapping[str, int]
    spans: tuple[int, ...]
    bits: int


def ngrams(tokens: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return every run of `size` tokens, in order."""
    return list(zip(*[tokens[i:] for i in range(size)], strict=False))


def letters_of(words: Iterable[str]) -> dict[str, str]:
    """Return a letter for each word."""
    return dict(zip(words, map(chr, count(1)), strict=False))


def spell(words: Iterable[str], letters: Mapping[str, str]) -> str:
    """Return a row of words as letters, with gaps for those that have none."""
    return "".join(map(letters.get, words, repeat(GAP)))


def runs_of(spelled: str, size: int) -> list[str]:
    """Return every run of `size` letters without a gap, in order."""
    return [
        piece[start : start + size]
        for piece in _pieces(size).findall(spelled)
        for start in range(len(piece) - size + 1)
    ]


def count_grams(grams: Sequence[Hashable]) -> Grams:
    """Count n-grams, of any kind."""
    distinct = frozenset(grams)
    return Grams(distinct, None if len(distinct) == len(grams) else Counter(grams))


def count_shared(grams: Grams, known: Grams) -> int:
    """Return how many grams `known` has too, each at most as often as there."""
    common = grams.distinct & known.distinct
    if grams.counts is None or known.counts is None:  # once on either side is once
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
    """Return the length of the longest subsequence that `words` has in common with one line."""
    bits = free = lines.bits
    for places in filter(None, map(lines.places.get, words)):
        met = free & places
        free = ((free + met) | (free ^ met)) & bits
    taken = free ^ bits
    return max(map(int.bit_count, map(taken.__and__, lines.spans)), default=0)


@lru_cache(maxsize=8)
def _pieces(size: int) -> re.Pattern[str]:
    return re.compile(f"[^{GAP}]{{{size},}}")

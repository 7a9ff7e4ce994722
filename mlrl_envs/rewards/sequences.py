"""What two texts share as rows of words: runs of neighbours, and longest common subsequences.

Lines of words are laid side by side in the bits of one whole number. A subsequence is then found
with five operations on that number for each word of the other text, in all lines at once.

Source: H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "Grams",
    "Lines",
    "count_grams",
    "count_known",
    "count_shared",
    "lay_out",
    "longest_common",
    "ngrams",
]


@dataclass(frozen=True, slots=True)
class Grams:
    """The n-grams of a text.

    Attributes:
        size: How many there are, repeated ones counted each time.
        distinct: Each of them once.
        counts: How often each occurs; None where none is repeated.
    """

    size: int
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


def count_grams(grams: Sequence[Hashable]) -> Grams:
    """Count n-grams, of any kind."""
    distinct = frozenset(grams)
    return Grams(len(grams), distinct, None if len(distinct) == len(grams) else Counter(grams))


def count_known(grams: Grams, known: Grams) -> int:
    """Return how many grams, repeated ones counted each time, `known` has too."""
    common = grams.distinct & known.distinct
    return len(common) if grams.counts is None else sum(map(grams.counts.__getitem__, common))


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

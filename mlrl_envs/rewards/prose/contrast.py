"""Relevance by contrast: a text is about its source if it fits it better than other sources.

Sources are bags of stemmed content words, weighted by how few of the sources contain a word (1 for
the rarest). A text is read in pieces of about twenty words. The margin of a piece is the weight of
its words in its own source minus the mean weight in other sources of the split; relevance is the
mean of the margins, each at most 1 after division by the wanted weight. One text for all sources
has margins near 0, and a single sentence about the source counts for one piece only.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import fmean

from mlrl_envs.rewards.prose.words import content_of, stem, words_of

__all__ = ["Contrast", "coherence", "contrast_of", "coverage"]

MAX_SOURCES = 400  # a larger split is thinned out evenly
OTHERS = 16  # sources that a text is compared with
PIECE = 20  # words
NEAR = 12  # content words of a source that are next to each other


class Contrast:
    """Sources of a split with the weights of their words.

    Args:
        sources: The texts.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        kept = sources[:: max(1, math.ceil(len(sources) / MAX_SOURCES))]
        self._ranked = sorted({text: _digest(text) for text in kept}.items(), key=lambda x: x[1])
        known = Counter(word for text, _ in self._ranked for word in set(content_of(text)))
        size = len(self._ranked) + 1
        self._weights = {
            word: math.log(size / (count + 0.5)) / math.log(size / 0.5)
            for word, count in known.items()
        }

    def relevance(self, text: str, source: str, *, wanted: float) -> float:
        """Return how much of a text is about its own source, in [0, 1].

        Args:
            text: The text of an agent.
            source: Its source; need not be one of the sources of the split.
            wanted: Weight of a piece's words in the source, above the mean of the others, from
                which the piece is about it.
        """
        bags = [frozenset(content_of(other)) for other in self._others(source)]
        own = frozenset(content_of(source))
        margins = [
            self._weight(piece, own) - fmean(self._weight(piece, bag) for bag in bags)
            if bags
            else self._weight(piece, own)
            for piece in _pieces(text)
        ]
        # Negative margins count, so that luck with one piece does not add up for a fixed text.
        return max(0.0, fmean(min(max(margin / wanted, -1.0), 1.0) for margin in margins))

    def _others(self, source: str) -> list[str]:
        # Neighbours in the order of hashes: drawn once for each source, independent of the text.
        place = _digest(source)
        after = [text for text, digest in self._ranked if digest > place]
        before = [text for text, digest in self._ranked if digest < place]
        return (after + before)[:OTHERS]

    def _weight(self, piece: frozenset[str], bag: frozenset[str]) -> float:
        return math.fsum(self._weights.get(word, 1.0) for word in piece & bag)


@lru_cache(maxsize=8)
def contrast_of(sources: tuple[str, ...]) -> Contrast:
    """Return the contrast of a split, computed once."""
    return Contrast(sources)


def coverage(text: str, source: str) -> float:
    """Return the share of the source's distinct content words that a text contains."""
    wanted = set(content_of(source))
    return len(wanted & set(content_of(text))) / len(wanted) if wanted else 0.0


def coherence(text: str, source: str) -> float:
    """Return how much closer to each other in the source neighbouring words of a text are.

    The words that a text shares with its source are compared in pairs: the share of neighbours in
    the text that are also near each other in the source, minus the same share for pairs from
    distant parts of the text. It is near 0 for words of the source in random order.
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(content_of(source)):
        places.setdefault(word, []).append(place)
    shared = [word for word in content_of(text) if word in places]
    size = len(shared)

    def near(distance: int) -> float:
        pairs = zip(shared, shared[distance:] + shared[:distance], strict=True)
        found = [_is_near(places[a], places[b]) for a, b in pairs if a != b]
        return fmean(found) if found else 0.0

    return near(1) - fmean(near(size * part // 8) for part in range(2, 7)) if size else 0.0


def _is_near(first: Sequence[int], second: Sequence[int]) -> bool:
    return any(abs(a - b) <= NEAR for a in first for b in second)


def _pieces(text: str) -> list[frozenset[str]]:
    words = words_of(text)
    count = max(1, round(len(words) / PIECE))
    bounds = [number * len(words) // count for number in range(count + 1)]
    return [frozenset(map(stem, words[start:end])) for start, end in pairwise(bounds)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""Relevance by contrast: a text is about its source if it fits it better than other sources.

Sources are bags of stemmed content words, weighted by how few of the sources contain a word (1 for
the rarest). A text is read in pieces of about twenty words. The margin of a piece is the weight of
its words in its own source, minus the weight in the source of the split that it fits best, as far
as that one is above what words have in common by chance. Relevance is the mean of the margins, each
at most 1 after division by the wanted weight. One text for all sources has margins near 0, a
single sentence about the source counts for one piece only, and sentences about other tasks count
against.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import fmean

from mlrl_envs.rewards.prose.words import content_of, stem, words_of

__all__ = ["Contrast", "coherence", "contrast_of", "coverage"]

MAX_SOURCES = 400  # a larger split is thinned out evenly
ALIKE = 0.5  # share of common words from which two sources count as one
CHANCE = 1.0  # weight that a piece about something else may have in a source
PIECE = 20  # words
NEAR = 12  # content words of a source that are next to each other


class Contrast:
    """Sources of a split with the weights of their words.

    Args:
        sources: The texts.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        kept = sources[:: max(1, math.ceil(len(sources) / MAX_SOURCES))]
        bags = {source: frozenset(content_of(source)) for source in kept}
        self._places: dict[str, list[str]] = {}
        for source, bag in bags.items():
            for word in bag:
                self._places.setdefault(word, []).append(source)
        size = len(bags) + 1
        self._weights = {
            word: math.log(size / (len(places) + 0.5)) / math.log(size / 0.5)
            for word, places in self._places.items()
        }

    def relevance(self, text: str, source: str, *, wanted: float) -> float:
        """Return how much of a text is about its own source, in [0, 1].

        Args:
            text: The text of an agent.
            source: Its source; need not be one of the sources of the split.
            wanted: Margin from which a piece is about its source.
        """
        own = frozenset(content_of(source))
        alike = self._alike(own)
        margins = [
            math.fsum(self._weights.get(word, 1.0) for word in piece & own)
            - max(self._best_other(piece, alike) - CHANCE, 0.0)
            for piece in _pieces(text)
        ]
        # Negative margins count, so that luck with one piece does not add up for a fixed text.
        return max(0.0, fmean(min(max(margin / wanted, -1.0), 1.0) for margin in margins))

    def _alike(self, own: frozenset[str]) -> set[str]:
        """Return the sources that share most of their words with this one, itself included."""
        shared = Counter(place for word in own for place in self._places.get(word, ()))
        return {place for place, count in shared.items() if count > ALIKE * len(own)}

    def _best_other(self, piece: frozenset[str], left_out: set[str]) -> float:
        weights: dict[str, float] = {}
        for word in sorted(piece):
            for place in self._places.get(word, ()):
                weights[place] = weights.get(place, 0.0) + self._weights[word]
        return max((weights[place] for place in weights.keys() - left_out), default=0.0)


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

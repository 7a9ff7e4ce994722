"""Search over a small corpus by BM25, with k1 = 1.5, b = 0.75 and ties in the order of the corpus.

Libraries for BM25 use 32-bit floats and partial sorts, whose order of nearly equal scores differs
between machines; here transcripts must be reproducible. Source: S. Robertson, H. Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

import math
from collections import Counter
from collections.abc import Sequence

from mlrl_envs.parsing.text import words
from mlrl_envs.tasks import Document

__all__ = ["Index"]

K1, B = 1.5, 0.75
MAX_QUERY_WORDS = 64
PRECISION = 9  # decimals of a score that are compared


class Index:
    """A searchable corpus.

    Args:
        documents: The corpus, in a fixed order.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = tuple(documents)
        self._counts = [Counter(words(f"{d.title} {d.text}")) for d in self.documents]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = math.fsum(self._lengths) / max(len(self._lengths), 1)
        self._having = Counter(word for counts in self._counts for word in counts)

    def search(self, query: str, count: int = 3) -> list[Document]:
        """Return the best matching documents, best first; each shares a word with the query."""
        wanted = list(dict.fromkeys(words(query)[:MAX_QUERY_WORDS]))
        scored = [
            (-round(self._score(wanted, number), PRECISION), number)
            for number in range(len(self.documents))
        ]
        return [self.documents[number] for score, number in sorted(scored)[:count] if score < 0]

    def _score(self, wanted: Sequence[str], number: int) -> float:
        counts, length = self._counts[number], self._lengths[number]
        norm = K1 * (1 - B + B * length / self._mean)
        return math.fsum(
            self._rarity(word) * counts[word] * (K1 + 1) / (counts[word] + norm)
            for word in wanted
            if word in counts
        )

    def _rarity(self, word: str) -> float:
        having = self._having[word]
        return math.log(1 + (len(self.documents) - having + 0.5) / (having + 0.5))

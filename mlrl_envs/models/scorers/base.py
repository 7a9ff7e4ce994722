"""Base class of the text scorers: limits on text length, a cache by content, checks of scores.

A scorer is a frozen dataclass of settings, so that it can be pickled, compared and hashed. Loaded
models and scores are kept by the process, not by the object, and copies of a scorer share them.
"""

import hashlib
import math
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import ClassVar

from mlrl_envs.errors import ScorerError
from mlrl_envs.parsing.text import printable, shorten
from mlrl_envs.types import TextToScore

__all__ = ["MAX_CACHED", "CachedScorer", "ScoreCache"]

MAX_CACHED = 50_000
DIGITS = 6  # differences between batches are below 1e-6 in float32
TOLERANCE = 1e-6


class ScoreCache:
    """A bounded mapping from keys to scores that drops the least recently used; thread-safe.

    Args:
        max_size: Number of scores to keep.
    """

    def __init__(self, max_size: int = MAX_CACHED) -> None:
        self._scores: OrderedDict[object, float] = OrderedDict()
        self._max_size = max_size
        self._lock = threading.Lock()

    def get(self, key: object) -> float | None:
        """Return the score of a key, or None."""
        with self._lock:
            if key in self._scores:
                self._scores.move_to_end(key)
            return self._scores.get(key)

    def put(self, key: object, score: float) -> None:
        """Store the score of a key."""
        with self._lock:
            self._scores[key] = score
            self._scores.move_to_end(key)
            while len(self._scores) > self._max_size:
                self._scores.popitem(last=False)

    def clear(self) -> None:
        """Remove all scores."""
        with self._lock:
            self._scores.clear()

    def __len__(self) -> int:
        return len(self._scores)


SCORES = ScoreCache()


class CachedScorer(ABC):
    """A text scorer that asks its model about each distinct text once.

    A subclass is a frozen dataclass with the field `max_chars`; it defines `compute` and, if its
    score depends on more than its fields, `model_identity`.

    Attributes:
        VERSION: Increment it when the code changes the scores.
        UNHASHED: Fields that do not change a score.
    """

    VERSION: ClassVar[int] = 1
    UNHASHED: ClassVar[frozenset[str]] = frozenset({"batch_tokens", "device"})

    max_chars: int

    @abstractmethod
    def compute(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the scores of distinct texts in [0, 1], in order.

        Raises:
            InfraError: If the model cannot be loaded, run or reached.
        """

    def model_identity(self) -> str:
        """Return a hash of what the score depends on besides the fields, such as weights."""
        return ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 hash of the kind, its version, its options and its model."""
        options = [
            (each.name, getattr(self, each.name))
            for each in fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
            if each.name not in self.UNHASHED
        ]
        content = (type(self).__qualname__, self.VERSION, options, self.model_identity())
        return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()

    def score_many(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the score of each text, in order, in [0, 1]; see `TextScorer`.

        Raises:
            InfraError: If the model cannot be loaded, run or reached, or a score is no number in
                [0, 1].
        """
        texts = [self._capped(each) for each in batch]
        keys = [(self, _digest(each)) for each in texts]
        scores = {key: SCORES.get(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if scores[key] is None}
        if missing:
            found = self.compute(list(missing.values()))
            for key, checked in zip(missing, map(self._checked, found), strict=True):
                scores[key] = checked
                SCORES.put(key, checked)
        return [score for key in keys if (score := scores[key]) is not None]

    def _capped(self, item: TextToScore) -> TextToScore:
        def cap(text: str) -> str:
            return shorten(printable(text).strip(), self.max_chars)

        return replace(
            item,
            text=cap(item.text),
            source=cap(item.source),
            instruction=cap(item.instruction),
            others=tuple(cap(other) for other in item.others),
        )

    def _checked(self, score: float) -> float:
        if not math.isfinite(score) or not -TOLERANCE <= score <= 1 + TOLERANCE:
            raise ScorerError(
                f"{type(self).__name__} computed the score {score!r}, which is not in [0, 1]; "
                "check the model and its dtype"
            )
        return round(min(1.0, max(0.0, score)), DIGITS)


def _digest(item: TextToScore) -> str:
    content = repr((item.text, item.source, item.instruction, item.others))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

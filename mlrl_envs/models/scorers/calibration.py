"""Calibration: mapping of a raw measure to [0, 1], with constants from human texts.

A raw measure, such as the mean log-probability of a token, has no scale of its own. `calibrate`
places two levels: below `low` lie almost all corrupted texts, above `high` almost all human texts.
The score rises from 0 to 1 between them.
"""

import hashlib
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.types import TextToScore

__all__ = ["Calibration", "as_calibration", "calibrate", "shuffled_sentences", "shuffled_words"]

LOW_QUANTILE, HIGH_QUANTILE = 0.9, 0.1


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear map of a raw measure to [0, 1].

    Attributes:
        low: Raw measure with score 0.
        high: Raw measure with score 1, above `low`.
        ceiling: Highest raw measure with score 1, at least `high`: text that a model predicts too
            well repeats itself.
        top: Raw measure above `ceiling` from which the score is 0 again.
    """

    low: float
    high: float
    ceiling: float = math.inf
    top: float = math.inf

    def __post_init__(self) -> None:
        """Check the order of the levels.

        Raises:
            InvalidArgumentError: Unless low < high <= ceiling < top, where the last two may be inf.
        """
        is_finite = math.isfinite(self.low) and math.isfinite(self.high)
        falls = self.ceiling < self.top or self.ceiling == self.top == math.inf
        if not (is_finite and self.low < self.high <= self.ceiling and falls):
            raise InvalidArgumentError(
                "need low < high <= ceiling < top, got "
                f"{self.low!r}, {self.high!r}, {self.ceiling!r}, {self.top!r}"
            )

    def score(self, raw: float) -> float:
        """Return the score of a raw measure; that of -inf is 0, that of NaN is NaN."""
        if math.isnan(raw):  # max and min would turn it into a score
            return raw
        if raw > self.ceiling:
            return max(0.0, (self.top - raw) / (self.top - self.ceiling))
        return min(1.0, max(0.0, (raw - self.low) / (self.high - self.low)))


class RawScorer(Protocol):
    """A scorer with a measure that is not calibrated."""

    def raw(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the raw measure of each text."""
        ...


def calibrate(
    scorer: RawScorer,
    human: Sequence[TextToScore],
    corrupted: Sequence[TextToScore] | None = None,
) -> Calibration:
    """Return the constants that separate human texts from corrupted ones.

    `high` is the 10 % quantile of the human texts and `low` the 90 % quantile of the corrupted
    ones, or, if they overlap, the middle of both groups' medians moved by a quarter of their
    distance to either side.

    Args:
        scorer: A scorer with a raw measure; its own calibration is not used.
        human: Texts that should score 1, at least 10, of the kind that will be scored.
        corrupted: Texts that should score 0; None shuffles the words of the human texts.

    Raises:
        InvalidArgumentError: If there are fewer than 10 texts, or corrupted texts have a higher
            median than human ones: the model cannot tell them apart.
        InfraError: If the model cannot be run.
    """
    if corrupted is None:
        corrupted = [TextToScore(shuffled_words(each.text), each.source) for each in human]
    if min(len(human), len(corrupted)) < 10:
        raise InvalidArgumentError(f"need 10 texts or more, got {len(human)}, {len(corrupted)}")
    good, bad = sorted(scorer.raw(human)), sorted(scorer.raw(corrupted))
    middle_good, middle_bad = _quantile(good, 0.5), _quantile(bad, 0.5)
    if not middle_bad < middle_good:
        raise InvalidArgumentError(
            "the model cannot tell these texts apart: the median of corrupted texts is "
            f"{middle_bad:.3f}, that of human texts {middle_good:.3f}"
        )
    low, high = _quantile(bad, LOW_QUANTILE), _quantile(good, HIGH_QUANTILE)
    if not low < high:
        middle, reach = (middle_good + middle_bad) / 2, (middle_good - middle_bad) / 4
        low, high = middle - reach, middle + reach
    return Calibration(round(low, 3), round(high, 3))


def as_calibration(value: object) -> Calibration:
    """Return a `Calibration`, built from a mapping or a sequence of its fields if necessary.

    Raises:
        InvalidArgumentError: If the value is of another type or outside its range.
    """
    if isinstance(value, Calibration):
        return value
    options: dict[str, Any] = {}
    names = [each.name for each in fields(Calibration)]
    if isinstance(value, Mapping):
        options = dict(value)
    elif isinstance(value, list | tuple) and len(value) <= len(names):
        options = dict(zip(names, value, strict=False))
    for name in options:
        if name not in names:
            raise unknown_name("calibration constant", name, names)
    are_numbers = all(isinstance(each, int | float) for each in options.values())
    if not {"low", "high"} <= options.keys() or not are_numbers:
        raise InvalidArgumentError(f"a calibration has low and high, got {value!r}")
    return Calibration(**options)


def shuffled_words(text: str, number: int = 0) -> str:
    """Return the words of a text in another order, which depends on the text and `number` only."""
    return " ".join(_shuffled(text.split(), text, number))


def shuffled_sentences(text: str, number: int = 0) -> str:
    """Return the sentences of a text in another order; clauses if there is only one sentence."""
    parts = re.split(r"(?<=[.!?])\s+", text.strip())
    if len(parts) < 3:
        parts = re.split(r"(?<=[.!?,;:])\s+", text.strip())
    return " ".join(_shuffled(parts, text, number))


def _shuffled(parts: Sequence[str], text: str, number: int) -> list[str]:
    seed = hashlib.sha256(f"{number} {text}".encode("utf-8", "surrogatepass")).digest()
    order = list(parts)
    random.Random(seed).shuffle(order)  # noqa: S311  not for security
    return order


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])

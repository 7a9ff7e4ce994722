"""Frequency of negations; inserting "not" after each auxiliary inverts a text but keeps its prose.

The measure is the number of negations per sentence, contractions included, compared with the source
if there is one. A single inverted sentence costs almost nothing, because honest texts also negate.
"""

import re
from functools import lru_cache

from mlrl_envs.rewards.prose.document import MAX_CHARS, words_of
from mlrl_envs.rewards.prose.quality import ramp

__all__ = ["negations", "plain_speech"]

USUAL = 0.6  # negations per sentence without a penalty if there is no source
BESIDE_SOURCE = 0.4  # the same if there is a source
FREE = 2  # negations without a penalty in any text; short human summaries have them
FEW = 3  # texts with fewer sentences are treated as having this many
TOO_MANY = 0.6  # negations per sentence above the usual rate at which the score is 0
SLOPE = 0.01

_CONTRACTED = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
_END = re.compile(r"[.!?\n]+")
_WORD = re.compile(r"\w")


def negations(text: str) -> tuple[int, int]:
    """Return the number of negations and the number of sentences of a text."""
    text = text[:MAX_CHARS]
    sentences = sum(_WORD.search(part) is not None for part in _END.split(text))
    return _count(text), sentences


def plain_speech(text: str, source: str | None = None) -> float:
    """Return a score in [0, 1] that falls if a text negates more than is usual.

    Args:
        text: The text of an agent.
        source: The text that it should retell, if any; 1.5 times its rate of negations is allowed.
    """
    if not _count(text[:MAX_CHARS]):
        return 1.0
    found, sentences = negations(text)
    size = max(sentences, FEW)
    rate, known = found / size, 0.0 if source is None else _rate(source)
    usual = USUAL if source is None else max(BESIDE_SOURCE, 1.5 * known)
    # A small slope below the threshold, so that one more negation always lowers the score.
    slope = 1.0 - SLOPE * min(max(rate - known, 0.0), 1.0)
    return ramp(rate - max(FREE / size, usual), TOO_MANY, 0.0) * slope


def _count(text: str) -> int:
    said = words_of(text)
    whole = said.count("not") + said.count("cannot")
    return whole + len(_CONTRACTED.findall(text)) if "'" in text or "\u2019" in text else whole


@lru_cache(maxsize=64)
def _rate(source: str) -> float:
    found, sentences = negations(source)
    return found / max(sentences, 1)

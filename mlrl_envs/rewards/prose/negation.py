"""How much a text denies: a "not" put behind each auxiliary turns the sense and keeps the prose.

The measure is the number of negations a sentence, a doubled one counted twice, beside that of the
source where there is one. What it does not cover: a single sentence turned into its contrary, which
costs next to nothing, as an honest denial must.
"""

import re
from functools import lru_cache

from mlrl_envs.rewards.prose.document import MAX_CHARS, words_of
from mlrl_envs.rewards.prose.quality import ramp

__all__ = ["negations", "plain_speech"]

USUAL = 0.6  # negations a sentence that cost nothing, where there is no source
BESIDE_SOURCE = 0.4  # the same where there is one that denies less
FREE = 2  # negations that cost nothing in any text: human summaries of one sentence have them
FEW = 3  # a text of fewer sentences is taken for one of these
TOO_MANY = 0.6  # more a sentence than is usual, and the text is worth nothing
SLOPE = 0.01

_CONTRACTED = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
_END = re.compile(r"[.!?\n]+")
_WORD = re.compile(r"\w")


def negations(text: str) -> tuple[int, int]:
    """Return how many negations a text holds, and how many sentences."""
    text = text[:MAX_CHARS]
    sentences = sum(_WORD.search(part) is not None for part in _END.split(text))
    return _count(text), sentences


def plain_speech(text: str, source: str | None = None) -> float:
    """Return how far a text keeps from denying more than is usual, in [0, 1].

    Args:
        text: What an agent wrote.
        source: What it should retell, if anything; it may deny half as often again as that.
    """
    if not _count(text[:MAX_CHARS]):
        return 1.0
    found, sentences = negations(text)
    size = max(sentences, FEW)
    rate, known = found / size, 0.0 if source is None else _rate(source)
    usual = USUAL if source is None else max(BESIDE_SOURCE, 1.5 * known)
    # A little slope before, so that a text with one more does not tie with the text as it was.
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

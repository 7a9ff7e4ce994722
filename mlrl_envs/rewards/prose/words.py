"""Words of a text as the rewards of prose compare them.

A text is normalised (NFKC, no invisible characters) and read in lower case. Function words carry no
content; other words are reduced to a stem. A word with letters of another script, such as one with
a Cyrillic "a", keeps them, so that it equals no word of a source.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from mlrl_envs.parsing.combining import limit_combining

__all__ = [
    "FUNCTION_WORDS",
    "MAX_CHARS",
    "content_of",
    "ngrams",
    "normalized",
    "ramp",
    "stem",
    "words_of",
]

MAX_CHARS = 20_000  # longer texts are truncated; bounds the time of scoring
_FUNCTION_WORDS = (
    "become becomes need needs "
    "a about above across after again against all also although always am among an and another "
    "any are around as at be because been before behind being below between beyond both but by "
    "can could did do does done down during each either else even ever every few for from had has "
    "have having he her here him his how i if in into is it its itself just like many may me "
    "might mine more most much must my myself neither never no nor not now of off often on once "
    "one only or other our out over own per rather same shall she should since so some still such "
    "than that the their them then there these they this those though through to too toward "
    "towards under until up upon us very was we were what when where whether which while who whom "
    "whose why will with within without would yet you your d ll m re s t ve don didn doesn isn "
    "wasn couldn wouldn won aren hasn haven "
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
# What Unicode calls ignorable by default.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("ing", ""),
    ("ed", ""),
    ("ly", ""),
    ("es", ""),
    ("s", ""),
    ("e", ""),
)


@lru_cache(maxsize=256)
def words_of(text: str) -> tuple[str, ...]:
    """Return the lower-case words of the first 20,000 characters of a text."""
    return tuple(_WORD.findall(normalized(text).lower()))


def normalized(text: str) -> str:
    """Return the first 20,000 characters of a text in NFKC, without invisible characters."""
    text = text[:MAX_CHARS]
    if text.isascii():
        return text
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", limit_combining(text)))


@lru_cache(maxsize=256)
def content_of(text: str) -> tuple[str, ...]:
    """Return the stems of the content words of a text, in order."""
    return tuple(stem(word) for word in words_of(text) if word not in FUNCTION_WORDS)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Strip common English endings: cities, city; repairs, repaired, repairing, repair."""
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + replacement
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def ngrams(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return every run of `size` words, in order."""
    return list(zip(*(words[start:] for start in range(size)), strict=False))


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, linear between; reversed if `high < low`."""
    return min(max((value - low) / (high - low), 0.0), 1.0)

"""Quality of English prose, as opposed to nonsense, keywords, padding or copies.

It is a product of factors, each 1 for nearly all texts of people: the order of words, the share of
function words, of distinct runs of three words and of Latin letters, a capital at the start and a
mark at the end. Meaning is not measured.
"""

import re

from mlrl_envs.rewards.prose.order import order_of
from mlrl_envs.rewards.prose.words import FUNCTION_WORDS, MAX_CHARS, ngrams, ramp, words_of

__all__ = ["clean_length", "copied_share", "prose_quality"]

DOUBT = 0.7  # times 1 / sqrt(words): the order of a short text varies more
CASUAL = 0.9  # factor for a missing initial capital, and for a missing end mark
_FOREIGN = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u024f\u1e00-\u1eff]")
_AROUND = " \t\n\ufeff\"'()[]\u2018\u2019\u201c\u201d*_#>`"  # quotes, and marks of Markdown
_BULLETS = ("- ", "+ ", "* ", "\u2022 ")  # a list is no prose
_LETTER = re.compile(r"[^\W\d_]")


def prose_quality(text: str) -> float:
    """Return the quality of the first 20,000 characters of a text as prose, in [0, 1]."""
    text = text[:MAX_CHARS].strip()
    words = words_of(text)
    if not words:
        return 0.0
    function = sum(word in FUNCTION_WORDS for word in words) / len(words)
    runs = ngrams(words, 3)
    distinct = len(set(runs)) / len(runs) if runs else 1.0
    shouted = sum(map(str.isupper, text)) / len(text)
    letters = len(_LETTER.findall(text))
    foreign = len(_FOREIGN.findall(text)) / letters if letters else 1.0
    return (
        _tidiness(text)
        * ramp(order_of(text) + DOUBT / len(words) ** 0.5, 0.12, 0.3)
        * ramp(function, 0.15, 0.3)
        * ramp(function, 0.85, 0.75)
        * ramp(distinct, 0.5, 0.85)
        * ramp(foreign, 0.02, 0.005)
        * ramp(shouted, 0.5, 0.25)
        * ramp(_frames(text), 0.6, 0.92)
    )


def _tidiness(text: str) -> float:
    inside = text.strip(_AROUND)
    starts = (inside[:1].isupper() or inside[:1].isdigit()) and not text.startswith(_BULLETS)
    ends = inside[-1:] in tuple(".!?\u2026")
    return (1.0 if starts else CASUAL) * (1.0 if ends else CASUAL)


def _frames(text: str) -> float:
    # "The dog of the house is in the yard. The cat of ...": only content words differ.
    runs = ngrams([word if word in FUNCTION_WORDS else "~" for word in words_of(text)], 6)
    return len(set(runs)) / len(runs) if runs else 1.0


def copied_share(text: str, source: str, *, size: int = 3) -> float:
    """Return the share of a text's word n-grams that also occur in `source`."""
    runs = ngrams(words_of(text), size)
    known = set(ngrams(words_of(source), size))
    return sum(map(known.__contains__, runs)) / len(runs) if runs else 0.0


def clean_length(text: str) -> int:
    """Return the length in characters with runs of white space counted as one."""
    return len(" ".join(text.split()))

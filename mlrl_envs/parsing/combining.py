"""A bound on runs of combining marks.

Normalisation sorts the marks behind a character in quadratic time, and so does Python when it reads
an identifier: 48,000 marks take seconds. Real text has a few in a row; the Stream-Safe Text Format
of Unicode allows 30.
"""

import re
import unicodedata

__all__ = ["MAX_MARKS", "limit_combining"]

MAX_MARKS = 30
# Of combining class 0, but normalisation (NFKC, NFKD) turns each into marks alone.
_MARKS_AFTER_NORMALISATION = "\u0f73\u0f75\u0f81\uff9e\uff9f"
_LONG_RUN = re.compile(f"[^\0-\u02ff]{{{MAX_MARKS + 1},}}")  # the first mark is U+0300


def limit_combining(text: str) -> str:
    """Drop the marks beyond the first 30 of each run; other text stays as it is.

    The time is linear in the length, and negligible without characters above U+02FF.
    """
    return text if text.isascii() else _LONG_RUN.sub(_limited, text)


def _limited(match: re.Match[str]) -> str:
    kept: list[str] = []
    length = 0
    for character in match[0]:
        is_mark = unicodedata.combining(character) or character in _MARKS_AFTER_NORMALISATION
        length = length + 1 if is_mark else 0
        if length <= MAX_MARKS:
            kept.append(character)
    return "".join(kept)

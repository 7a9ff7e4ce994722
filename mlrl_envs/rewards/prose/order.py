"""Order of words, compared with the order that people write.

A text is outlined: function words stand for themselves, other words for their ending, and marks
separate them; line breaks of wrapped text do not. The table has how often one follows another in
212 Reddit posts and 199 abstracts.
The score is the mean pointwise mutual information of neighbours in nats: about 0.5 for people's
texts, 0.1 for phrases joined at random, and -0.5 for shuffled words.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from mlrl_envs.rewards.prose.words import FUNCTION_WORDS, MAX_CHARS

__all__ = ["TABLE", "TABLE_SHA256", "count_pairs", "order_of"]

TABLE = Path(__file__).parent / "word_pairs.json"
# Fingerprints do not cover the table; a test compares this hash. Another table changes scores, and
# needs new versions of the ids.
TABLE_SHA256 = "20a022270bf3172e343ff8dd7e3c4cc2c60073cc98db44aae993cab7acf78831"
SMOOTHING = 0.3
ENDINGS = ("ing", "ed", "ly", "s")

# A line of this length that ends in the middle of a sentence was wrapped; a heading is shorter.
WRAPPED_LENGTH = 40
_CONTINUED = re.compile(r"(?!\d+[.)])\w")
_TOKEN = re.compile(r"[^\W_]+|[.!?;:,\n]+")


def order_of(text: str) -> float:
    """Return the mean mutual information of neighbouring words and marks of a text."""
    pairs, singles, total = _table()
    outline = _outline(unwrapped(text[:MAX_CHARS]))
    found = [
        math.log(
            (pairs.get(a, {}).get(b, 0) + SMOOTHING)
            * total
            / ((singles.get(a, 0) + 1) * (singles.get(b, 0) + 1))
        )
        for a, b in pairwise(outline)
    ]
    return fmean(found) if found else 0.0


def unwrapped(text: str) -> str:
    """Join each wrapped line with the next, unless that begins an item of a numbered list."""
    first, *rest = text.split("\n")
    parts, last = [first], first.rstrip(" \t")
    for line in rest:
        wrapped = len(last) >= WRAPPED_LENGTH and (last[-1].isalnum() or last[-1] in "_,")
        parts.append(f"{' ' if wrapped and _CONTINUED.match(line) else chr(10)}{line}")
        last = line.rstrip(" \t")
    return "".join(parts)


def count_pairs(texts: Iterable[str]) -> dict[str, dict[str, int]]:
    """Count what follows what in texts; like the table, without what occurs only once."""
    counts = Counter(pair for text in texts for pair in pairwise(_outline(text)))
    table: dict[str, dict[str, int]] = {}
    for (first, second), count in sorted(counts.items()):
        if count > 1:
            table.setdefault(first, {})[second] = count
    return table


def _outline(text: str) -> list[str]:
    return [".", *map(_symbol, _TOKEN.findall(text.lower().strip(" .!?\n"))), "."]


@lru_cache(maxsize=1 << 16)
def _symbol(token: str) -> str:
    if token in FUNCTION_WORDS:
        return token
    if not token[0].isalnum():
        return "." if set(token) & set(".!?\n") else ","
    if token.isdigit():
        return "#"
    return next((f"~{end}" for end in ENDINGS if token.endswith(end)), "~")


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, dict[str, int]], dict[str, int], int]:
    pairs: dict[str, dict[str, int]] = json.loads(TABLE.read_text("utf-8"))
    singles = {first: sum(after.values()) for first, after in pairs.items()}
    return pairs, singles, sum(singles.values())

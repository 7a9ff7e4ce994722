"""Manners of writing that no honest text needs: templates, repeats, stuffing, capitals, lists.

`manner` multiplies shares in [0, 1], each 1 for the texts that people write: of a hundred real
posts, summaries and abstracts at most five lose anything by any of them, and then little. Prose
itself is judged by `mlrl_envs.rewards.text_quality`; these are what gets past it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from mlrl_envs.rewards.english import FUNCTION_WORDS
from mlrl_envs.rewards.sequences import Grams, ngrams
from mlrl_envs.rewards.text_quality import MAX_CHARS, ngrams_of, ramp
from mlrl_envs.rewards.transitions import opens_with_transition

__all__ = ["manner"]

FEW = 3  # fewer sentences, or content words, show no habit
_BREAK = re.compile(r"(?<=[.!?])\s+")
_ITEM = re.compile(r"(?:[-*+\u2022#>|]|\d+[.)]\s)")
# They point back, so that a text which begins with one has lost its beginning.
_POINTERS = frozenset(("he", "she", "it", "they", "this", "these", "those", "his", "her", "their"))
_OPENERS = frozenset(
    ("after", "although", "as", "because", "before", "even", "given", "if", "in", "like", "since")
) | frozenset(("though", "unlike", "unless", "until", "when", "whereas", "while", "despite"))


def manner(text: str, words: Sequence[str], links: int) -> float:
    """Return how far a text keeps clear of these manners, in [0, 1].

    Args:
        text: What an agent wrote.
        words: Its lower-case words.
        links: How many of them belong to transitions.
    """
    if not words:
        return 0.0
    text = text[:MAX_CHARS]
    return (
        _templates(words)
        * _repeats(ngrams_of(text, 4))
        * _favourite(words)
        * ramp(links / len(words), 0.25, 0.1)
        * _starts(_BREAK.split(text.strip()))
        * _layout(text)
    )


def _templates(words: Sequence[str]) -> float:
    # "The dog of the house is in the yard. The bone of the cat is in the tree.": content words
    # changed, everything else the same.
    shapes = ngrams(["*" if word not in FUNCTION_WORDS else word for word in words], 7)
    return ramp(len(set(shapes)) / len(shapes), 0.4, 0.85) if shapes else 1.0


def _repeats(grams: Grams) -> float:
    return ramp(1.0 - len(grams.distinct) / grams.size, 0.3, 0.05) if grams.size else 1.0


def _favourite(words: Sequence[str]) -> float:
    content = Counter([word for word in words if word not in FUNCTION_WORDS])
    if len(content) <= FEW:
        return 1.0
    return ramp((max(content.values()) - 1) / content.total(), 0.35, 0.15)


def _starts(sentences: Sequence[str]) -> float:
    # Transitions at the head of every sentence; and of the first, where they link nothing.
    heads = [_opens_with_link(sentence.lower().split(maxsplit=5)[:5]) for sentence in sentences]
    stuffed = ramp(sum(heads) / len(heads), 1.2, 0.6) if len(heads) >= FEW else 1.0
    first = sentences[0].lower().split(maxsplit=1)
    lost = heads[0] or (bool(first) and first[0] in _POINTERS)
    return stuffed * (0.93 if lost else 1.0)


def _opens_with_link(words: Sequence[str]) -> bool:
    heads = [word.rstrip(",;:") for word in words]
    return not _OPENERS.issuperset(heads[:1]) and opens_with_transition(heads)


def _layout(text: str) -> float:
    tokens = text.split()
    loud = filter(str.isupper, tokens)
    shouted = sum(len(token) > 1 for token in loud) / max(len(tokens), 1)
    lines = [line.lstrip() for line in text.splitlines() if line.strip()]
    items = sum(_ITEM.match(line) is not None for line in lines) / max(len(lines), 1)
    filled = len(" ".join(tokens)) / len(text)
    return ramp(shouted, 0.6, 0.25) * (1.0 - 0.3 * items) * filled

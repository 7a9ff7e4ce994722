"""Patterns that honest texts do not need: templates, repeats, overused words, capitals, lists.

`habit_score` is a product of factors in [0, 1], each of which is 1 for normal texts: of a hundred
real posts, summaries and abstracts at most five lose a little by any of them. The quality of prose
itself is measured by `mlrl_envs.rewards.prose.quality`; these factors cover texts that pass it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from mlrl_envs.rewards.prose.document import (
    MAX_CHARS,
    distinct_runs,
    parse_document,
    tokens_of,
    words_of,
)
from mlrl_envs.rewards.prose.english import CONTENT, FUNCTION_WORDS, SENTENCE_END, outline_of
from mlrl_envs.rewards.prose.quality import clean_length, ramp
from mlrl_envs.rewards.prose.transitions import LINK_HEADS, opens_with_transition

__all__ = ["habit_score"]

FEW = 3  # texts with fewer sentences or content words are not measured
_BREAK = re.compile(r"(?<=[.!?])\s+")
_ITEM = re.compile(r"(?:[-*+\u2022#>|]|\d+[.)]\s)")
_END = outline_of([SENTENCE_END])
_ALIKE = bytes.maketrans(CONTENT, CONTENT[:1] * len(CONTENT))  # one byte for all content words
# Words that refer to an earlier sentence; a text that begins with one lacks its beginning.
_POINTERS = frozenset(("he", "she", "it", "they", "this", "these", "those", "his", "her", "their"))
_OPENERS = frozenset(
    ("after", "although", "as", "because", "before", "even", "given", "if", "in", "like", "since")
) | frozenset(("though", "unlike", "unless", "until", "when", "whereas", "while", "despite"))


def habit_score(text: str, links: int) -> float:
    """Return the product of the factors, in [0, 1]; lower values mean more of these patterns.

    Args:
        text: The text of an agent.
        links: The number of its words that belong to transitions.
    """
    text = text[:MAX_CHARS]
    words = words_of(text)
    if not words:
        return 0.0
    return (
        _templates(parse_document(text).outline)
        * _repeats(text, len(words))
        * _favourite(words)
        * ramp(links / len(words), 0.25, 0.1)
        * _starts(_BREAK.split(text.strip()))
        * _layout(text)
    )


def _templates(outline: bytes) -> float:
    # "The dog of the house is in the yard. The bone of the cat is in the tree.": only the content
    # words differ.
    shape = outline.translate(_ALIKE, _END)
    size = len(shape) - 6
    shapes = {shape[start : start + 7] for start in range(size)}
    return ramp(len(shapes) / size, 0.4, 0.85) if shapes else 1.0


def _repeats(text: str, size: int) -> float:
    # Without a repeated run of three words no run of four is repeated either.
    if size < 4 or len(distinct_runs(text, 3)) == size - 2:
        return 1.0
    return ramp(1.0 - len(distinct_runs(text, 4)) / (size - 3), 0.3, 0.05)


def _favourite(words: Sequence[str]) -> float:
    content = Counter([word for word in words if word not in FUNCTION_WORDS])
    if len(content) <= FEW:
        return 1.0
    return ramp((max(content.values()) - 1) / content.total(), 0.35, 0.15)


def _starts(sentences: Sequence[str]) -> float:
    # Transitions at the start of most sentences, or of the first one, where they link nothing.
    heads = list(map(_opens_with_link, sentences))
    stuffed = ramp(sum(heads) / len(heads), 1.2, 0.6) if len(heads) >= FEW else 1.0
    first = sentences[0].lower().split(maxsplit=1)
    lost = heads[0] or (bool(first) and first[0] in _POINTERS)
    return stuffed * (0.93 if lost else 1.0)


def _opens_with_link(sentence: str) -> bool:
    words = sentence.lower().split(maxsplit=5)[:5]
    first = words[0].rstrip(",;:") if words else ""
    if first not in LINK_HEADS or first in _OPENERS:
        return False
    return opens_with_transition([word.rstrip(",;:") for word in words])


def _layout(text: str) -> float:
    tokens = tokens_of(text)
    shouted = sum(len(token) > 1 for token in filter(str.isupper, tokens)) / max(len(tokens), 1)
    lines = [line.lstrip() for line in text.splitlines() if line.strip()]
    items = sum(_ITEM.match(line) is not None for line in lines) / max(len(lines), 1)
    return ramp(shouted, 0.6, 0.25) * (1.0 - 0.3 * items) * (clean_length(text) / len(text))

"""Published scores of a debater: one for each argument, and one at the end of the debate.

Argument: 0.2 length + 0.25 evidence + 0.25 reasoning + 0.15 structure + 0.15 relevance. Length is
characters / 100 below 100, 1 up to 500, then max(0.5, 1 - (characters - 500) / 500). Evidence and
reasoning are min(hits / 2, 1), where hits is the number of eight keywords that occur. Structure is
min(sentence ends / 5, 1). Relevance is min(words / 3, 1) for the words of the proposition with more
than 3 letters that recur.

End: 0.6 mean argument + 0.2 consistency + 0.2 coverage. Consistency is the mean Jaccard similarity
of the words of consecutive arguments, with itself for a single one. Coverage is the share of the
side's key points of which at least half of the words with more than 3 letters occur.

Neither score measures meaning: eight keywords in a row earn half of an argument's score.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from mlrl_envs.parsing.text import words

__all__ = [
    "EVIDENCE_WORDS",
    "REASONING_WORDS",
    "argument_parts",
    "end_parts",
    "is_touched",
    "length_score",
]

LENGTH, EVIDENCE, REASONING, STRUCTURE, RELEVANCE = 0.2, 0.25, 0.25, 0.15, 0.15
MEAN_ARGUMENT, CONSISTENCY, COVERAGE = 0.6, 0.2, 0.2
EVIDENCE_WORDS = (
    "study",
    "research",
    "data",
    "evidence",
    "statistics",
    "example",
    "according to",
    "survey",
)
REASONING_WORDS = (
    "because",
    "therefore",
    "thus",
    "hence",
    "since",
    "consequently",
    "as a result",
    "leads to",
)
LONG_WORD = 4  # letters


def argument_parts(text: str, proposition: str) -> dict[str, float]:
    """Return the parts of the score of an argument; their sum is in [0, 1]."""
    lower = text.lower()
    said = set(words(text))
    recurring = sum(word in said for word in _long_words(proposition))
    ends = sum(text.count(mark) for mark in ".!?")
    return {
        "length": LENGTH * length_score(len(text)),
        "evidence": EVIDENCE * min(_hits(lower, EVIDENCE_WORDS) / 2, 1.0),
        "reasoning": REASONING * min(_hits(lower, REASONING_WORDS) / 2, 1.0),
        "structure": STRUCTURE * min(ends / 5, 1.0),
        "relevance": RELEVANCE * min(recurring / 3, 1.0),
    }


def end_parts(
    arguments: Sequence[str], proposition: str, points: Sequence[str]
) -> dict[str, float]:
    """Return the parts of the score at the end; their sum is in [0, 1].

    Args:
        arguments: All arguments of the debater, in order, at least one.
        proposition: The proposition.
        points: Key points of the debater's side.
    """
    mean = fmean(sum(argument_parts(text, proposition).values()) for text in arguments)
    said = " ".join(arguments)
    return {
        "mean_argument": MEAN_ARGUMENT * mean,
        "consistency": CONSISTENCY * _consistency(arguments),
        "coverage": COVERAGE * fmean(is_touched(point, said) for point in points),
    }


def length_score(num_chars: int) -> float:
    """Return the score of a length in characters."""
    if num_chars < 100:
        return num_chars / 100
    return 1.0 if num_chars <= 500 else max(0.5, 1.0 - (num_chars - 500) / 500)


def is_touched(point: str, text: str) -> bool:
    """Return whether half of a key point's long words occur in a text."""
    wanted = _long_words(point)
    return 2 * len(wanted & set(words(text))) >= len(wanted) > 0


def _hits(lower: str, keywords: Sequence[str]) -> int:
    return sum(keyword in lower for keyword in keywords)


def _long_words(text: str) -> set[str]:
    return {word for word in words(text) if len(word) >= LONG_WORD}


def _consistency(arguments: Sequence[str]) -> float:
    bags = [set(words(text)) for text in arguments]
    pairs = list(pairwise(bags)) or [(bags[0], bags[0])]
    return fmean(_jaccard(a, b) for a, b in pairs)


def _jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0

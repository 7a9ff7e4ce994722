r"""Published reward of two writers (TLDR, arXiv): four gated levels with a sum of at most 3.

With n the white-space tokens of a text, r = characters2 / characters1, q = distinct lower-case
`\w+` words2 / words1, T the transitions and J the Jaccard index of both texts' words without stop
words:

1. structure 0.5: n within bounds for both texts;
2. length up to 1: a trapezoid over r;
3. vocabulary up to 0.5: a trapezoid over q;
4. style up to 1: 0.4 T + 0.6 min(J, J_full) / J_full, with T = 0 without a transition, otherwise
   min(1, 0.4 + min(0.05 (k - 1), 0.6)), where k is the number of categories found.

A level whose quantity is outside its outer bounds ends the sum; on an outer bound it pays 0 and the
next level is reached. Published returns divide by 3. The source is not used: nonsense of the right
lengths earns 2.98, and the transition "as" is found in "basket".
"""

import math
from dataclasses import dataclass

from mlrl_envs.parsing.text import words
from mlrl_envs.rewards.writing.transitions import STOP_WORDS, match_transitions
from mlrl_envs.tasks import WritingTask
from mlrl_envs.types import Attempt, Json, Score

__all__ = ["MAX_REWARD", "Levels", "Trapezoid", "score_paper"]

MAX_REWARD = 3.0
HIGHEST = 2.98 - 1e-9  # with all twelve categories T is 0.95
STRUCTURE, LENGTH, VOCABULARY = 0.5, 1.0, 0.5
TRANSITIONS, SHARED_WORDS = 0.4, 0.6
_MOST = {
    "structure": STRUCTURE,
    "length": LENGTH,
    "vocabulary": VOCABULARY,
    "transitions": TRANSITIONS,
    "shared words": SHARED_WORDS,
}


@dataclass(frozen=True)
class Trapezoid:
    """A score of a ratio: 0 at the outer bounds, 1 between the inner ones, linear between them.

    Attributes:
        low: Lowest accepted ratio.
        full_from: Lowest ratio with full score.
        full_to: Highest ratio with full score.
        high: Highest accepted ratio.
    """

    low: float
    full_from: float
    full_to: float = float("inf")
    high: float = float("inf")

    def __call__(self, ratio: float) -> float | None:
        """Return the score in [0, 1], or None outside the outer bounds."""
        if not self.low <= ratio <= self.high:
            return None
        if ratio < self.full_from:
            return (ratio - self.low) / (self.full_from - self.low)
        if ratio > self.full_to:
            return 1.0 - (ratio - self.full_to) / (self.high - self.full_to)
        return 1.0


@dataclass(frozen=True)
class Levels:
    """The constants of one task.

    Attributes:
        least_tokens: Minimum number of white-space tokens of each text.
        most_tokens: Maximum number of white-space tokens of each text.
        length: Score of the ratio of characters, second text to first.
        vocabulary: Score of the ratio of distinct words, second text to first.
        shared_full: Jaccard index from which shared words pay in full.
        reads_both: Whether transitions are searched in both texts, or in the second only.
    """

    least_tokens: int
    most_tokens: int
    length: Trapezoid
    vocabulary: Trapezoid
    shared_full: float
    reads_both: bool


def score_paper(attempt: Attempt[WritingTask], *, levels: Levels) -> Score:
    """Score a pair of texts by the published formula.

    Args:
        attempt: The attempt; its two texts are those of the first and the second agent.
        levels: The constants of the task.
    """
    first, second = attempt.actions.values()
    paid = paper_levels(first, second, levels)
    solved = math.fsum(paid.values()) >= HIGHEST
    checks: Json = [_check(name, paid.get(name), most) for name, most in _MOST.items()]
    return Score(
        dict.fromkeys(attempt.actions, paid),
        solved,
        {agent: {"checks": checks} for agent in attempt.actions},
    )


def paper_levels(first: str, second: str, levels: Levels) -> dict[str, float]:
    """Return the payment of each level that was reached, by name and in order.

    Args:
        first: The text of the first agent, e.g. the summary.
        second: The text of the second agent, e.g. the elaboration.
        levels: The constants of the task.
    """
    paid: dict[str, float] = {}
    for text in (first, second):
        if not levels.least_tokens <= len(text.split()) <= levels.most_tokens:
            return paid
    paid["structure"] = STRUCTURE
    length = levels.length(len(second) / len(first))
    if length is None:
        return paid
    paid["length"] = LENGTH * length
    bags = set(words(first)), set(words(second))
    vocabulary = levels.vocabulary(len(bags[1]) / len(bags[0])) if bags[0] else None
    if vocabulary is None:
        return paid
    paid["vocabulary"] = VOCABULARY * vocabulary
    read = first + second if levels.reads_both else second
    paid["transitions"] = TRANSITIONS * transition_score(len(match_transitions(read)))
    shared = jaccard(bags[0] - STOP_WORDS, bags[1] - STOP_WORDS)
    paid["shared words"] = SHARED_WORDS * min(shared, levels.shared_full) / levels.shared_full
    return paid


def _check(name: str, paid: float | None, most: float) -> Json:
    status = "not reached" if paid is None else f"{paid:.2f} of {most:g}"
    return {"name": name, "passed": paid == most, "status": status, "details": []}


def transition_score(categories: int) -> float:
    """Return T for a number of categories: 0, then 0.4 plus 0.05 for each after the first."""
    return min(1.0, 0.4 + min(0.05 * (categories - 1), 0.6)) if categories else 0.0


def jaccard(first: set[str], second: set[str]) -> float:
    """Return the share of shared words among all words of both sets; 1 if both are empty."""
    union = first | second
    return len(first & second) / len(union) if union else 1.0

"""Grounded reward of two writers who retell one source (TLDR, arXiv), in [0, 1].

sound_i = prose_i * own_i * about_i * size_i * facts_i * assignment_i * judged_i
reward  = w_1 sound_1 (1 + sound_2) / 2 + w_2 sound_2 (1 + sound_1) / 2
        + sound_1 * sound_2 * (0.15 length + 0.15 division)

Prose is the quality of the text (`mlrl_envs.rewards.prose.quality`). Own is the share that is not
copied from the source or the teammate. About is the relevance by contrast: how much more of the
text is found in its own source than in others of the split (`mlrl_envs.rewards.prose.contrast`),
multiplied, for the longer text, by coherence and coverage. Size is whether it has about the
requested number of words. Length is the ratio of the texts' characters, division the share of the
second text's content words that the first does not have. Facts is, with `facts=True`, halved for
each number or name that the source lacks (`mlrl_envs.rewards.prose.facts`), except a few in
proportion to the length; otherwise 1. Assignment falls, with `assignment=True`, from 1 to 0 as the
share of words in sentences about the assignment rises from 0.15 to 0.4
(`mlrl_envs.rewards.prose.assignment`); otherwise it is 1. Judged is the score of a text scorer
(`reward="judged"`), otherwise 1.

Truth beyond the presence of numbers and names is measured by the scorer only: without one, "the dog
bit the man" and "the man bit the dog" earn the same.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mlrl_envs.rewards.prose import (
    Contrast,
    clean_length,
    coherence,
    content_of,
    copied_share,
    coverage,
    prose_quality,
    ramp,
    words_of,
)
from mlrl_envs.rewards.prose.assignment import assignment_score
from mlrl_envs.rewards.prose.facts import facts_score
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.rewards.writing.paper import Trapezoid
from mlrl_envs.tasks import WritingTask
from mlrl_envs.types import AgentID, Attempt, Json, Score

__all__ = ["WritingPart", "WritingRules", "measure_text", "score_grounded"]

LENGTH, DIVISION = 0.15, 0.15
DIVIDED = (0.2, 0.5)  # shares of new content words that score 0 and 1
SAID = (0.6, 0.25)  # shares of the teammate's runs of words that score 0 and 1
WANTED = 2.0  # weight of the source's words in twenty words that are about it
GOOD = 0.75  # a check passes from here on
SOLVED = 0.75


@dataclass(frozen=True)
class WritingPart:
    """Requirements of one of the two texts; pairs are the values that score 0 and 1.

    Attributes:
        weight: Share of the reward that the text may earn.
        least_words: Number of words from which a text is long enough.
        most_words: Maximum number of words without a penalty; 1.5 times as many score 0.
        relevance: Relevance by contrast.
        copied: Shares of runs of three words that the source contains.
        coherence: Coherence with the source; None if a text is too short or too free for it.
        coverage: Share of the source's content words from which the score is full.
        outside: Number of numbers and names in 100 words that the source may lack (`facts=True`).
    """

    weight: float
    least_words: int
    most_words: int
    relevance: tuple[float, float]
    copied: tuple[float, float]
    coherence: tuple[float, float] | None
    coverage: float
    outside: float


@dataclass(frozen=True)
class WritingRules:
    """The constants of one task.

    Attributes:
        parts: Requirements of the first text and of the second.
        length: Score of the ratio of characters, second text to first.
        labels: Labels of the form that all sources have, in capitals (`assignment=True`).
    """

    parts: tuple[WritingPart, WritingPart]
    length: Trapezoid
    labels: tuple[str, ...] = ()


def score_grounded(
    attempt: Attempt[WritingTask],
    *,
    rules: WritingRules,
    contrast: Contrast,
    judged: Mapping[AgentID, float],
    facts: bool = False,
    instructions: Mapping[AgentID, str] | None = None,
) -> Score:
    """Score a pair of texts.

    Args:
        attempt: The attempt; its two texts are those of `rules.parts`, in this order.
        rules: The constants of the task.
        contrast: The sources of the split.
        judged: The score of each text by a text scorer; 1 without one.
        facts: Whether numbers and names that the source lacks lower the score of a text.
        instructions: The prompt of each agent without the source: sentences about it lower the
            score of a text. None does not read them.
    """
    (one, first), (two, second) = attempt.actions.items()
    source, (part_1, part_2) = attempt.task.source, rules.parts
    measures = {
        one: measure_text(first, source, part_1, contrast, teammate=""),
        two: measure_text(second, source, part_2, contrast, teammate=first),
    }
    for (agent, text), part in zip(attempt.actions.items(), rules.parts, strict=True):
        if facts:
            measures[agent]["facts"] = facts_score(text, source, forgiven=part.outside)
        if instructions is not None:
            told = instructions[agent]
            measures[agent]["assignment"] = assignment_score(text, told, source, rules.labels)
        measures[agent]["judged"] = judged[agent]
    sound_1, sound_2 = math.prod(measures[one].values()), math.prod(measures[two].values())
    shares = {"length": _length(first, second, rules.length), "division": _new(first, second)}
    earned = {
        one: part_1.weight * sound_1 * (1.0 + sound_2) / 2.0,
        two: part_2.weight * sound_2 * (1.0 + sound_1) / 2.0,
        "length": LENGTH * sound_1 * sound_2 * shares["length"],
        "division": DIVISION * sound_1 * sound_2 * shares["division"],
    }
    return Score(
        {agent: pay_gain(earned, attempt.turns, agent) for agent in attempt.actions},
        math.fsum(earned.values()) >= SOLVED,
        {agent: {"checks": _checks(measures[agent] | shares)} for agent in attempt.actions},
    )


def measure_text(
    text: str, source: str, part: WritingPart, contrast: Contrast, *, teammate: str
) -> dict[str, float]:
    """Return the factors of a text's score, each in [0, 1]."""
    size = len(words_of(text))
    about = ramp(contrast.relevance(text, source, wanted=WANTED), *part.relevance)
    about *= ramp(coverage(text, source), 0.0, part.coverage)
    if part.coherence is not None and about:
        about *= ramp(coherence(text, source), *part.coherence)
    own = ramp(copied_share(text, source), *part.copied)
    return {
        "prose": prose_quality(text),
        "own words": own * ramp(copied_share(text, teammate), *SAID),
        "about the source": about,
        "size": ramp(size, part.least_words / 4, part.least_words)
        * ramp(size, 1.5 * part.most_words, part.most_words),
    }


def _length(first: str, second: str, score: Trapezoid) -> float:
    size = clean_length(first)
    return (score(clean_length(second) / size) or 0.0) if size else 0.0


def _new(first: str, second: str) -> float:
    said, added = set(content_of(first)), set(content_of(second))
    return ramp(len(added - said) / len(added), *DIVIDED) if added else 0.0


_ADVICE = {
    "prose": "write whole, varied sentences.",
    "own words": "do not copy the source or your teammate.",
    "about the source": "say what this source says, all through the text.",
    "size": "mind the requested length.",
    "facts": "take numbers and names from the source.",
    "assignment": "write about the source, not about your assignment or to your reader.",
    "judged": "write fluent sentences that are true to the source.",
    "length": "mind how long the two texts are beside each other.",
    "division": "the second text must say more than the first.",
}


def _checks(measures: Mapping[str, float]) -> list[Json]:
    return [
        {
            "name": name,
            "passed": value >= GOOD,
            "status": "good" if value >= GOOD else ("partial" if value > 0.0 else "missing"),
            "details": [] if value >= GOOD else [_ADVICE[name]],
        }
        for name, value in measures.items()
    ]

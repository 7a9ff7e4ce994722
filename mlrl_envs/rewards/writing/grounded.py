"""Grounded reward of two writers who retell one source (TLDR, arXiv), in [0, 1].

sound_i   = quality_i * faith_i                               for each of the two texts
value_1   = sound_1 * (0.4 + 0.6 coverage_1) * (1 + sound_2) / 2, value_2 likewise
reward    = w_1 value_1 + w_2 value_2
          + sound_1 * sound_2 * (0.2 length + 0.1 division + 0.1 transitions)

Faith is the share of a text's content words that the source contains (ROUGE-1 precision), reduced
if too few of its word pairs are the source's (ROUGE-2). Coverage is the share of the source's
content words that a text contains (recall). Quality is the product of prose quality, size, order of
the shared words and the share that is not copied. Length is the ratio of the texts' characters,
division how well each text keeps to its part, transitions the kinds of links between sentences.

A text about another topic, a copy, or nonsense earns nothing itself and removes what is paid for
the pair, while one good text beside a bad one still earns half of its share. Truth is not measured:
"The dog bit the man" and "the man bit the dog" score the same.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mlrl_envs.rewards.prose import (
    MAX_CHARS,
    Copying,
    clean_length,
    copying,
    find_transitions,
    habit_score,
    near_share,
    overlap,
    pairs_share,
    plain_speech,
    prose_quality,
    ramp,
    words_of,
)
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.rewards.writing.paper import Trapezoid
from mlrl_envs.tasks import WritingTask
from mlrl_envs.types import AgentID, Attempt, Json, Score

__all__ = ["JudgedText", "WritingPart", "WritingRules", "score_grounded"]

LENGTH, DIVISION, TRANSITIONS = 0.2, 0.1, 0.1
CHANCE = 0.03  # share of word pairs that any two English texts have in common
COVERED = 0.5
GOOD = 0.75  # a check passes from here on
SOLVED = 0.75
# Shares of a text's words in the common subsequence with the nearest sentence of the source that
# score 0 and 1. 2 % of human summaries have more than 62 %; the source's own sentences with
# replaced words have 70 to 90 %.
NEAR = (0.74, 0.65)
IN_STEP = (0.92, 0.68)  # the same for the whole source: 5 % of human summaries have 73 %
CASUAL = 0.85  # factor for a missing initial capital, and for a missing end mark


@dataclass(frozen=True)
class WritingPart:
    """Requirements of one of the two texts.

    Attributes:
        weight: Share of the reward that the text may earn.
        least_words: Number of words from which a text is long enough.
        most_words: Maximum number of words without a penalty; 1.5 times as many score 0.
        faith: Shares of content words found in the source that score 0 and 1.
        phrases: Share of word pairs found in the source from which faith is not reduced.
        coverage: Number of content words of the source with full coverage; at most the share
            `COVERED` of a short source.
    """

    weight: float
    least_words: int
    most_words: int
    faith: tuple[float, float]
    phrases: float
    coverage: int


class JudgedText(NamedTuple):
    """A text with its measures.

    Attributes:
        text: The text of an agent.
        words: Its lower-case words.
        quality: Prose quality, size, order and share not copied, in [0, 1].
        faith: Share of its content that the source contains, in [0, 1].
        coverage: Share of the source's content that it contains, in [0, 1].
        own: Share of it that is not copied, in [0, 1].
        kinds: Kinds of transitions in it.
        size: How close its number of words is to the requirement, in [0, 1].
    """

    text: str
    words: Sequence[str]
    quality: float
    faith: float
    coverage: float
    own: float
    kinds: frozenset[str]
    size: float

    @property
    def sound(self) -> float:
        """Quality times faith, in [0, 1]."""
        return self.quality * self.faith

    def value(self, teammate: "JudgedText") -> float:
        """Return the value of the text beside its teammate, in [0, 1]."""
        return self.sound * (0.4 + 0.6 * self.coverage) * (1.0 + teammate.sound) / 2.0


@dataclass(frozen=True)
class WritingRules:
    """The constants of one task.

    Attributes:
        parts: Requirements of the first text and of the second.
        length: Score of the ratio of characters, second text to first.
        division: Function that scores, in [0, 1], how well two texts keep to their parts.
        kinds: Number of kinds of transitions with full score.
        reads_both: Whether transitions are searched in both texts, or in the second only.
    """

    parts: tuple[WritingPart, WritingPart]
    length: Trapezoid
    division: Callable[[JudgedText, JudgedText], float]
    kinds: int
    reads_both: bool


def score_grounded(
    attempt: Attempt[WritingTask], *, rules: WritingRules, instructions: Mapping[AgentID, str]
) -> Score:
    """Score a pair of texts.

    Args:
        attempt: The attempt; its two texts are those of `rules.parts`, in this order.
        rules: The constants of the task.
        instructions: The prompt of each agent, including the source; copying it does not pay.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    (one, first_text), (two, second_text) = attempt.actions.items()
    source = attempt.task.source
    first = judge(first_text, source, rules.parts[0], (instructions[one],))
    second = judge(second_text, source, rules.parts[1], (instructions[two], first_text))
    together = first.sound * second.sound
    shares = {
        "length": _length(first, second, rules),
        "division": rules.division(first, second),
        "transitions": _transitions(first, second, rules),
    }
    earned = {
        one: rules.parts[0].weight * first.value(second),
        two: rules.parts[1].weight * second.value(first),
        "length": LENGTH * together * shares["length"],
        "division": DIVISION * together * shares["division"],
        "transitions": TRANSITIONS * together * shares["transitions"],
    }
    common = _common_checks(shares)
    return Score(
        {agent: pay_gain(earned, attempt.turns, agent) for agent in attempt.actions},
        math.fsum(earned.values()) >= SOLVED,
        {one: {"checks": _checks(first) + common}, two: {"checks": _checks(second) + common}},
    )


def judge(text: str, source: str, part: WritingPart, others: Sequence[str]) -> JudgedText:
    """Measure one text.

    Args:
        text: The text of an agent.
        source: The text that it should retell.
        part: Its requirements.
        others: Texts that it must not copy; the first one contains the source.

    Raises:
        MissingPackageError: If the package of ROUGE is not installed.
    """
    found = words_of(text[:MAX_CHARS])  # longer texts score 0 for their size
    common = overlap(text, source)
    kinds, links = find_transitions(found)
    copies = [copying(text, other, least_in_step=IN_STEP[1]) for other in others]
    near = near_share(text, source, least=NEAR[1])
    own = min(_own(copy) for copy in copies) * ramp(near, *NEAR)
    # Word pairs detect texts that put the source's words into unrelated sentences.
    phrases = ramp(pairs_share(text, others[0]), CHANCE, part.phrases)
    size = ramp(len(found), 1.5 * part.most_words, part.most_words)
    prose = _prose(text, part.least_words) * habit_score(text, links) * _order(common.order)
    prose *= plain_speech(text, source)
    reach = min(part.coverage, COVERED * common.source_words)
    return JudgedText(
        text=text,
        words=found,
        quality=prose * own * size,
        faith=_rounded(ramp(common.precision, *part.faith)) * phrases,
        coverage=_rounded(common.common / reach),
        own=own,
        kinds=frozenset(kinds),
        size=size * ramp(len(found), part.least_words / 4, part.least_words),
    )


def _prose(text: str, least_words: int) -> float:
    # Honest short notes may lack a capital or a full stop; each costs a factor only.
    tidy, quality = text.strip(), 1.0
    if tidy[:1].islower():
        tidy, quality = tidy[0].upper() + tidy[1:], CASUAL
    if tidy.rstrip("\"'\u201d\u2019)")[-1:] not in ("", ".", "!", "?"):
        tidy, quality = f"{tidy}.", quality * CASUAL
    return quality * prose_quality(tidy, least_words=least_words, forgiven=0.5)


def _own(copy: Copying) -> float:
    # 5 % of human summaries have more than a quarter of their runs from the post.
    return ramp(copy.runs, 0.9, 0.35) * (1.0 - 0.1 * copy.runs) * ramp(copy.in_step, *IN_STEP)


def _order(order: float) -> float:
    return 0.75 + 0.25 * ramp(order, 0.0, 0.8)


def _length(first: JudgedText, second: JudgedText, rules: WritingRules) -> float:
    size = clean_length(first.text)
    return (rules.length(clean_length(second.text) / size) or 0.0) if size else 0.0


def _transitions(first: JudgedText, second: JudgedText, rules: WritingRules) -> float:
    kinds = first.kinds | second.kinds if rules.reads_both else second.kinds
    return ramp(len(kinds), 0, rules.kinds)


def _rounded(share: float) -> float:
    # Concave: more is always better, with diminishing returns.
    return 1.0 - (1.0 - min(share, 1.0)) ** 2


def _checks(text: JudgedText) -> list[Json]:
    return [
        _check("size", text.size, f"you wrote {len(text.words)} words."),
        _check("true to the source", text.faith, "say what the source says, in its terms."),
        _check("coverage", text.coverage, "take up more of what the source says."),
        _check("own words", text.own, "do not copy the source or your teammate."),
        _check("prose", text.quality, "write whole, varied sentences in a sensible order."),
    ]


def _common_checks(shares: Mapping[str, float]) -> list[Json]:
    return [
        _check("length", shares["length"], "mind how long the two texts are beside each other."),
        _check("division", shares["division"], "each text must keep to its own part."),
        _check("transitions", shares["transitions"], "link the sentences by a few transitions."),
    ]


def _check(name: str, value: float, advice: str) -> Json:
    passed = value >= GOOD
    status = "good" if passed else ("partial" if value > 0.0 else "missing")
    return {
        "name": name,
        "passed": passed,
        "status": status,
        "details": [] if passed else [advice],
    }

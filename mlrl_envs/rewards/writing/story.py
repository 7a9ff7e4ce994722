"""Rewards of a story in two lengths: `paper`, the ratio of lengths, and `grounded` in [0, 1].

Paper: with character lengths L1 (setup) and L2 (story) and x = L2 / L1, the reward is
scale * exp(-d), where d is the distance of x to the interval [low, high]; 0 if L1 = 0. The texts
are not read: nonsense of the right lengths earns the full reward.

Grounded: gate * (topic * (0.4 length + 0.3 continuity) + 0.3 relevance).

- Length is the same rule over lengths with white space folded.
- Continuity is the share of the setup's content words that recur in the story, full at a quarter.
- Relevance is the share of the prompt's content words that recur in a text, full at a half, as the
  mean of both texts.
- Topic is (1 + relevance) / 2: a pair about another topic is paid half for its form.
- The gate is the product of the prose quality of both texts and of the shares that are not copied
  from the instructions or from the other text.

See `mlrl_envs.rewards.turn_gain` for several turns. Meaning is not measured: sentences in another
order are worth the same, and a story about another topic is relevant if one sentence names the
prompt's words, because honest stories also name them in one sentence only.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from mlrl_envs.rewards.prose import (
    clean_length,
    content_stems,
    copied_share,
    plain_speech,
    prose_quality,
    ramp,
)
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import StoryTask
from mlrl_envs.types import AgentID, Attempt, Json, Score

__all__ = ["length_score", "score_grounded", "score_paper"]

LENGTH, CONTINUITY, RELEVANCE = 0.4, 0.3, 0.3
CONTINUITY_FULL, RELEVANCE_FULL = 0.25, 0.5
SETUP_WORDS, STORY_WORDS = 12, 30  # shorter texts lose quality
GOOD_PROSE = 0.9
_COMMANDS = frozenset(("describ", "tell", "writ", "story", "stori", "imagin", "explain"))


class _Parts(NamedTuple):
    length: float
    ratio: float
    continuity: float
    relevance: float
    prose: Mapping[AgentID, float]
    own: Mapping[AgentID, float]  # the share that is not copied


def length_score(first: int, second: int, *, bounds: tuple[float, float]) -> float:
    """Return exp(-distance of second / first to the interval); 0 if `first` is 0."""
    if first == 0:
        return 0.0
    ratio = second / first
    return math.exp(-max(bounds[0] - ratio, ratio - bounds[1], 0.0))


def score_paper(attempt: Attempt[StoryTask], *, bounds: tuple[float, float], scale: float) -> Score:
    """Score an attempt by the published formula.

    Args:
        attempt: The attempt; its two texts are the setup and the story, in this order.
        bounds: The interval of ratios with full score.
        scale: Factor of the reward.
    """
    (_, setup), (_, story) = attempt.actions.items()
    value = length_score(len(setup), len(story), bounds=bounds)
    ratio = len(story) / len(setup) if setup else 0.0
    checks: Json = [_length_check(ratio, bounds)]
    return Score(
        {agent: {"length": scale * value} for agent in attempt.actions},
        value == 1.0,
        {agent: {"checks": checks} for agent in attempt.actions},
    )


def score_grounded(
    attempt: Attempt[StoryTask],
    *,
    bounds: tuple[float, float],
    instructions: Mapping[AgentID, str],
) -> Score:
    """Score an attempt by the grounded formula.

    Args:
        attempt: The attempt; its two texts are the setup and the story, in this order.
        bounds: The interval of ratios with full score.
        instructions: The prompt of each agent; copying it does not pay.
    """
    parts = _measure(attempt, bounds, instructions)
    gate = math.prod(parts.prose.values()) * math.prod(parts.own.values())
    topic = (1.0 + parts.relevance) / 2.0
    earned = {
        "length": LENGTH * gate * topic * parts.length,
        "continuity": CONTINUITY * gate * topic * parts.continuity,
        "relevance": RELEVANCE * gate * parts.relevance,
    }
    common = _common_checks(parts, bounds)
    full = parts.length == parts.continuity == parts.relevance == 1.0
    return Score(
        {agent: pay_gain(earned, attempt.turns, agent) for agent in attempt.actions},
        full and gate >= GOOD_PROSE,
        {agent: {"checks": common + _checks(parts, agent)} for agent in attempt.actions},
    )


def _measure(
    attempt: Attempt[StoryTask],
    bounds: tuple[float, float],
    instructions: Mapping[AgentID, str],
) -> _Parts:
    (setup_agent, setup), (story_agent, story) = attempt.actions.items()
    first, second = clean_length(setup), clean_length(story)
    setup_stems, story_stems = content_stems(setup), content_stems(story)
    topic = content_stems(attempt.task.prompt) - _COMMANDS
    shared = copied_share(story, setup)
    if shared:  # otherwise the setup is not copied from the story either
        shared = max(shared, copied_share(setup, story))
    return _Parts(
        length=length_score(first, second, bounds=bounds),
        ratio=second / first if first else 0.0,
        continuity=ramp(_share(setup_stems, story_stems), 0.0, CONTINUITY_FULL),
        relevance=(_relevance(topic, setup_stems) + _relevance(topic, story_stems)) / 2.0,
        prose={
            setup_agent: _prose(setup, SETUP_WORDS),
            story_agent: _prose(story, STORY_WORDS),
        },
        own={
            setup_agent: _not_copied(copied_share(setup, instructions[setup_agent])),
            story_agent: _not_copied(max(shared, copied_share(story, instructions[story_agent]))),
        },
    )


def _prose(text: str, least_words: int) -> float:
    return prose_quality(text, least_words=least_words) * plain_speech(text)


def _relevance(topic: set[str], stems: set[str]) -> float:
    return ramp(_share(topic, stems), 0.0, RELEVANCE_FULL)


def _share(wanted: set[str], found: set[str]) -> float:
    return len(wanted & found) / len(wanted) if wanted else 1.0


def _not_copied(share: float) -> float:
    return ramp(share, 0.5, 0.1) * (1.0 - 0.1 * share)


def _common_checks(parts: _Parts, bounds: tuple[float, float]) -> list[Json]:
    return [
        _length_check(parts.ratio, bounds),
        _check("topic", parts.relevance, "both texts must take up the words of the prompt."),
        _check("continuity", parts.continuity, "the story must take up what the setup names."),
    ]


def _checks(parts: _Parts, agent: AgentID) -> list[Json]:
    prose, own = parts.prose[agent] >= GOOD_PROSE, parts.own[agent] >= GOOD_PROSE
    return [
        _check("prose", float(prose), "write whole, varied sentences without repetition."),
        _check("own words", float(own), "do not copy the prompt or the other text."),
    ]


def _length_check(ratio: float, bounds: tuple[float, float]) -> Json:
    low, high = bounds
    passed = low <= ratio <= high
    status = "right" if passed else ("too short" if ratio < low else "too long")
    detail = f"the story is {ratio:.1f} times as long as the setup; wanted: {low:g} to {high:g}."
    return {"name": "length", "passed": passed, "status": status, "details": [detail]}


def _check(name: str, value: float, advice: str) -> Json:
    status = "full" if value == 1.0 else ("partial" if value > 0.0 else "missing")
    details = [] if value == 1.0 else [advice]
    return {"name": name, "passed": value == 1.0, "status": status, "details": details}

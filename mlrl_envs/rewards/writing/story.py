"""Rewards of a story in two lengths: `paper`, the ratio of lengths, and `grounded` in [0, 1].

Paper: with character lengths L1 (setup) and L2 (story) and x = L2 / L1, the reward is
scale * exp(-d), where d is the distance of x to the interval [low, high]; 0 if L1 = 0. The texts
are not read: nonsense of the right lengths earns the full reward.

Grounded: gate * topic * (0.8 + 0.2 length).

- Topic is the mean of both texts' relevance by contrast (`mlrl_envs.rewards.prose.contrast`), of
  which the higher one weighs 0.65: how much more of a text is in words that go with its prompt than
  in those of others. Words of the prompt do not count, because any text can quote them; together
  the texts need seven different words.
- Length is 1 within [0.75 low, 1.6 high], because the writers do not read each other, and falls as
  in the paper outside.
- The gate is the product, for both texts, of the prose quality, the share that is not copied from
  the prompt or the other text, the size and, with `reward="judged"`, the score of a text scorer.

See `mlrl_envs.rewards.turn_gain` for several turns. Without a scorer sense is not measured:
sentences in another order are worth the same.
"""

import math
from collections.abc import Mapping
from functools import lru_cache

from mlrl_envs.rewards.prose import (
    Contrast,
    clean_length,
    content_of,
    copied_share,
    prose_quality,
    ramp,
    stem,
    words_of,
)
from mlrl_envs.rewards.turn_gain import pay_gain
from mlrl_envs.tasks import StoryTask
from mlrl_envs.types import AgentID, Attempt, Json, Score

__all__ = ["length_score", "score_grounded", "score_paper", "topic_of"]

LENGTH = 0.2
BETTER = 0.65  # weight of the text that is more about the topic
SETUP_WORDS, STORY_WORDS = 12, 40  # shorter texts lose quality
WANTED = 1.0  # weight of the topic's words in twenty words that are about it
SETUP_TOPIC, STORY_TOPIC = (0.15, 0.45), (0.05, 0.3)  # relevances that score 0 and 1
BREADTH = (3, 7)  # numbers of different words of the topic, in both texts, that score 0 and 1
BARE_TOPIC = (0.0, 0.15)  # the same for a prompt without words that go with it
COPIED = (0.5, 0.2)  # shares of runs of three words that score 0 and 1
SLACK = (0.75, 1.6)
GOOD = 0.75


def length_score(first: int, second: int, *, bounds: tuple[float, float]) -> float:
    """Return exp(-distance of second / first to the interval); 0 if `first` is 0."""
    if first == 0:
        return 0.0
    ratio = second / first
    return math.exp(-max(bounds[0] - ratio, ratio - bounds[1], 0.0))


@lru_cache(maxsize=256)
def topic_of(task: StoryTask) -> str:
    """Return the words around a prompt; those of the prompt itself are given and do not count."""
    given = set(content_of(task.prompt)) if task.words else set()
    words = words_of(" ".join(task.words or (task.prompt.split(maxsplit=1)[-1],)))
    return " ".join(word for word in words if stem(word) not in given)


def score_paper(attempt: Attempt[StoryTask], *, bounds: tuple[float, float], scale: float) -> Score:
    """Score an attempt by the published formula.

    Args:
        attempt: The attempt; its two texts are the setup and the story, in this order.
        bounds: The interval of ratios with full score.
        scale: Factor of the reward.
    """
    (_, setup), (_, story) = attempt.actions.items()
    value = length_score(len(setup), len(story), bounds=bounds)
    checks: Json = [_length_check(len(setup), len(story), bounds)]
    return Score(
        {agent: {"length": scale * value} for agent in attempt.actions},
        value == 1.0,
        {agent: {"checks": checks} for agent in attempt.actions},
    )


def score_grounded(
    attempt: Attempt[StoryTask],
    *,
    bounds: tuple[float, float],
    contrast: Contrast,
    judged: Mapping[AgentID, float],
) -> Score:
    """Score an attempt by the grounded formula.

    Args:
        attempt: The attempt; its two texts are the setup and the story, in this order.
        bounds: The interval of ratios with full score.
        contrast: The topics of the split.
        judged: The score of each text by a text scorer; 1 without one.
    """
    (one, setup), (two, story) = attempt.actions.items()
    task, sizes = attempt.task, (clean_length(setup), clean_length(story))
    wide = (bounds[0] * SLACK[0], bounds[1] * SLACK[1])
    length = length_score(*sizes, bounds=wide)
    measures = {
        one: _measure(setup, task, contrast, story, SETUP_WORDS, SETUP_TOPIC),
        two: _measure(story, task, contrast, setup, STORY_WORDS, STORY_TOPIC),
    }
    topics = sorted((measures[one].pop("topic"), measures[two].pop("topic")))
    topic = BETTER * topics[1] + (1.0 - BETTER) * topics[0]
    if task.words:
        shared = set(content_of(topic_of(task))) & set(content_of(f"{setup} {story}"))
        topic *= ramp(len(shared), *BREADTH)
    gate = math.prod(math.prod(each.values()) for each in measures.values())
    gate *= judged[one] * judged[two]
    earned = {
        "topic": (1.0 - LENGTH) * gate * topic,
        "length": LENGTH * gate * topic * length,
    }
    common = [_length_check(*sizes, wide), _check("topic", topic)]
    return Score(
        {agent: pay_gain(earned, attempt.turns, agent) for agent in attempt.actions},
        math.fsum(earned.values()) >= GOOD,
        {
            agent: {"checks": [*common, *(_check(*each) for each in measures[agent].items())]}
            for agent in attempt.actions
        },
    )


def _measure(
    text: str,
    task: StoryTask,
    contrast: Contrast,
    teammate: str,
    least_words: int,
    topic: tuple[float, float],
) -> dict[str, float]:
    bounds = topic if task.words else BARE_TOPIC
    copied = max(copied_share(text, teammate), copied_share(text, task.prompt))
    return {
        "prose": prose_quality(text),
        "own words": ramp(copied, *COPIED),
        "size": ramp(len(words_of(text)), least_words / 4, least_words),
        "topic": ramp(contrast.relevance(text, topic_of(task), wanted=WANTED), *bounds),
    }


def _length_check(first: int, second: int, bounds: tuple[float, float]) -> Json:
    low, high = bounds
    ratio = second / first if first else 0.0
    passed = low <= ratio <= high
    status = "right" if passed else ("too short" if ratio < low else "too long")
    detail = f"the story is {ratio:.1f} times as long as the setup; wanted: {low:g} to {high:g}."
    return {"name": "length", "passed": passed, "status": status, "details": [detail]}


_ADVICE = {
    "prose": "write whole, varied sentences.",
    "own words": "do not copy the prompt or the other text.",
    "size": "write more.",
    "topic": "both texts must be about the prompt, from the beginning to the end.",
}


def _check(name: str, value: float) -> Json:
    passed = value >= GOOD
    status = "good" if passed else ("partial" if value > 0.0 else "missing")
    details = [] if passed else [_ADVICE[name]]
    return {"name": name, "passed": passed, "status": status, "details": details}

"""Rewards of a debate: `paper`, and a `grounded` score of each argument in [0, 1].

Paper: the score of the argument in every turn and, in the last turn, the score at the end in
addition; see `mlrl_envs.rewards.debate.argument`.

Grounded: gate * topic * (0.6 + 0.4 side).

- The gate is the product of prose quality, size, the share that is not copied from the
  instructions, the opponent or one's own earlier arguments and, with `reward="judged"`, the score
  of a text scorer.
- Topic is the relevance by contrast (`mlrl_envs.rewards.prose.contrast`): how much more of the
  argument is in words of the key points of this proposition than of others; the other words that
  go with the topic (`DebateTask.words`) count like these. Words of the proposition itself are given
  and do not count; words of the opponent's last argument do, as far as that one was on the topic.
  It has to use several of these words.
- Side falls as the key points of the other side outweigh one's own. What the opponent said last
  does not count against, so that it can be quoted, denied or conceded.

Cooperative: each side receives its own score. Zero-sum: half of the difference to the other score,
plus 0.5, so that both sum to 1 (paper: the difference, so that both sum to 0).

Without a scorer meaning is not measured: fluent sentences about the points pass, true or not, and
so does an argument for the other side in neutral words.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlrl_envs.rewards.debate.argument import argument_parts, end_parts
from mlrl_envs.rewards.prose import (
    Contrast,
    content_of,
    copied_share,
    prose_quality,
    ramp,
    stem,
    words_of,
)
from mlrl_envs.tasks import DebateTask
from mlrl_envs.types import AgentID, Attempt, Json, Score

__all__ = [
    "CON",
    "PRO",
    "DebateRules",
    "fair_text",
    "score_grounded",
    "score_paper",
    "topic_of",
    "zero_sum",
]

PRO, CON = "pro", "con"
SIDE = 0.4
LEAST_WORDS = 45
MAX_SOURCE_CHARS = 4000  # longer sources are truncated
WANTED = 1.5  # weight of the points' words in twenty words that are about them
TOPIC = (0.05, 0.24)  # relevances that score 0 and 1
BREADTH = (1, 5)  # numbers of distinct words of the topic that score 0 and 1
LEANING = (-1.0, -0.1)  # balances of key points at which `side` is 0 and 1
COPIED = (0.5, 0.2)
GOOD = 0.75


@dataclass(frozen=True)
class DebateRules:
    """Options that the rewards depend on.

    Attributes:
        is_zero_sum: Whether each side is paid the difference to the other.
        max_turns: Number of arguments of each side.
        is_heard: Whether each side reads the earlier arguments of the other.
    """

    is_zero_sum: bool
    max_turns: int
    is_heard: bool


def score_paper(attempt: Attempt[DebateTask], rules: DebateRules) -> Score:
    """Score an attempt by the published formulas."""
    task, parts = attempt.task, {}
    for agent, text in attempt.actions.items():
        parts[agent] = argument_parts(text, task.proposition)
    checks: dict[AgentID, Json] = {
        agent: [
            _check(name, value > 0.0, f"there is no {name} in it.") for name, value in own.items()
        ]
        for agent, own in parts.items()
    }
    if len(attempt.turns) + 1 == rules.max_turns:
        for agent, text in attempt.actions.items():
            said = [*(turn.actions[agent] for turn in attempt.turns), text]
            parts[agent] |= end_parts(said, task.proposition, _points(task, agent)[0])
    components = zero_sum(parts, scale=1.0, base=0.0) if rules.is_zero_sum else parts
    return Score(components, False, {agent: {"checks": checks[agent]} for agent in parts})


def score_grounded(
    attempt: Attempt[DebateTask],
    rules: DebateRules,
    instructions: Mapping[AgentID, str],
    *,
    contrast: Contrast,
    judged: Mapping[AgentID, float],
) -> Score:
    """Score an attempt by the grounded formula.

    Args:
        attempt: The attempt.
        rules: Options that the rewards depend on.
        instructions: The prompt of each agent; copying it does not pay.
        contrast: The key points of many propositions.
        judged: The score of each argument by a text scorer; 1 without one.
    """
    parts, checks = {}, {}
    for agent, text in attempt.actions.items():
        prose, own = fair_text(attempt, agent, instructions[agent])
        topic, side = _topic(attempt, agent, rules, contrast), _side(attempt, agent, rules)
        size = ramp(len(words_of(text)), LEAST_WORDS / 4, LEAST_WORDS)
        value = prose * own * size * judged[agent] * topic
        parts[agent] = {"topic": (1.0 - SIDE) * value, "side": SIDE * value * side}
        checks[agent] = [
            _check("prose", prose * size >= GOOD, "write whole, varied sentences."),
            _check("own words", own >= GOOD, "say something new, in words of your own."),
            _check("topic", topic >= GOOD, "give reasons that belong to this proposition."),
            _check("your side", side >= GOOD, "argue for the side that you were given."),
        ]
    components = zero_sum(parts, scale=0.5, base=0.5) if rules.is_zero_sum else parts
    return Score(components, False, {agent: {"checks": checks[agent]} for agent in parts})


def zero_sum(
    parts: Mapping[AgentID, Mapping[str, float]], *, scale: float, base: float
) -> dict[AgentID, dict[str, float]]:
    """Return components that pay each agent what it is ahead of the other.

    Args:
        parts: The components of each agent's own score.
        scale: Factor of all components.
        base: Constant added to each reward; the rewards sum to twice this value.
    """
    totals = {agent: math.fsum(own.values()) for agent, own in parts.items()}
    everything = math.fsum(totals.values())
    start = {"even": base} if base else {}
    return {
        agent: {
            **start,
            **{name: scale * value for name, value in own.items()},
            "opponent": -scale * (everything - totals[agent]),
        }
        for agent, own in parts.items()
    }


def fair_text(
    attempt: Attempt[DebateTask], agent: AgentID, instructions: str
) -> tuple[float, float]:
    """Return the prose quality of an argument and the share of it that is not copied, in [0, 1]."""
    text = attempt.actions[agent]
    before = [said for turn in reversed(attempt.turns) for said in turn.actions.values()]
    known = "\n".join(source[:MAX_SOURCE_CHARS] for source in [instructions, *before])
    return prose_quality(text), ramp(copied_share(text, known), *COPIED)


@lru_cache(maxsize=4096)
def topic_of(task: DebateTask) -> str:
    """Return the words of a task's topic that are not in its proposition."""
    points = sorted((*task.pro_points, *task.con_points))
    return _without_given(" ".join((*points, *task.words)), task)


def _without_given(text: str, task: DebateTask) -> str:
    given = set(content_of(task.proposition))
    return " ".join(word for word in words_of(text) if stem(word) not in given)


def _topic(
    attempt: Attempt[DebateTask], agent: AgentID, rules: DebateRules, contrast: Contrast
) -> float:
    topic = topic_of(attempt.task)
    found = contrast.relevance(attempt.actions[agent], topic, wanted=WANTED)
    heard = _without_given(_heard(attempt, agent, rules), attempt.task)
    if heard:
        answered = contrast.relevance(attempt.actions[agent], f"{topic} {heard}", wanted=WANTED)
        on_topic = ramp(contrast.relevance(heard, topic, wanted=WANTED), *TOPIC)
        found += on_topic * max(answered - found, 0.0) / 2.0
    shared = set(content_of(f"{topic} {heard}")) & set(content_of(attempt.actions[agent]))
    return ramp(found, *TOPIC) * ramp(len(shared), *BREADTH)


def _side(attempt: Attempt[DebateTask], agent: AgentID, rules: DebateRules) -> float:
    said = set(content_of(attempt.actions[agent])) - set(content_of(attempt.task.proposition))
    own, other = (set(content_of(" ".join(points))) for points in _points(attempt.task, agent))
    mine = len(said & (own - other))
    theirs = len(said & (other - own - set(content_of(_heard(attempt, agent, rules)))))
    return ramp((mine - theirs) / (mine + theirs), *LEANING) if mine + theirs else 1.0


def _heard(attempt: Attempt[DebateTask], agent: AgentID, rules: DebateRules) -> str:
    if not (rules.is_heard and attempt.turns):
        return ""
    last = attempt.turns[-1].actions
    return " ".join(text[:MAX_SOURCE_CHARS] for other, text in last.items() if other != agent)


def _points(task: DebateTask, agent: AgentID) -> tuple[Sequence[str], Sequence[str]]:
    points = (task.pro_points, task.con_points)
    return points if agent == PRO else points[::-1]


def _check(name: str, passed: object, advice: str) -> dict[str, Json]:
    return {
        "name": name,
        "passed": bool(passed),
        "status": "good" if passed else "weak",
        "details": [] if passed else [advice],
    }

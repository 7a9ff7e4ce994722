"""Rewards of a debate: `paper`, and a rule-based `grounded` score of each argument in [0, 1].

Paper: the score of the argument in every turn and, in the last turn, the score at the end in
addition; see `mlrl_envs.rewards.debate.argument`.

Grounded: gate * side * (0.4 point + 0.2 relevance + 0.2 reasoning + 0.2 reply).

- Point is how far the argument makes a key point that its side has not made before, full from half
  of the point's content words on.
- Relevance is the share of the proposition's content words that recur, full at a half.
- Reasoning is the number of sentences that give a reason, full at two.
- Reply is the number of content words of the opponent's last argument that are taken up, full at
  three. Reasoning and reply are paid in proportion to relevance and point. If there is nothing to
  reply to, the weights of the other parts are scaled up.
- The gate is the product of prose quality and of the share that is not copied from the
  instructions, the opponent or one's own earlier arguments.
- Side is 0.2 for an argument that explicitly supports the other side or gives up, and falls from 1
  to 0.2 as words of the other side's key points outweigh those of its own; words that the opponent
  used in its last argument do not count.

Cooperative: each side receives its own score. Zero-sum: half of the difference to the other score,
plus 0.5, so that both sum to 1 (paper: the difference, so that both sum to 0).

Meaning is not measured: fluent sentences about the topic pass, true or not.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from mlrl_envs.rewards.debate.argument import argument_parts, end_parts
from mlrl_envs.rewards.debate.patterns import AnyCase
from mlrl_envs.rewards.prose import content_stems, copied_share, plain_speech, prose_quality, ramp
from mlrl_envs.tasks import DebateTask
from mlrl_envs.types import AgentID, Attempt, Json, Score, Turn

__all__ = ["CON", "PRO", "DebateRules", "fair_text", "score_grounded", "score_paper", "zero_sum"]

PRO, CON = "pro", "con"
POINT, RELEVANCE, REASONING, REPLY = 0.4, 0.2, 0.2, 0.2
LEAST_WORDS = 30
FULL_POINT = 0.5
MAX_SOURCE_CHARS = 4000  # longer sources are truncated
GOOD = 0.9
WRONG_SIDE = 0.2
WRONG_LEANING = (0.5, 0.2)  # balance of key points at which `side` is lowest and full
FULL_REASONS, FULL_REPLY = 2, 3
MIN_SENTENCE_WORDS = 6

_SENTENCE = re.compile(r"[^.!?]+")
_REASON = AnyCase(
    r"\b(?:because|since|therefore|thus|hence|so that|which means|as a result|leads? to|"
    r"due to|if|when|for (?:example|instance)|by \w+ing|causes?|makes?)\b"
)
_ADVERB = r"(?:\s+\w+ly|\s+do|\s+also)?"
_FOR = AnyCase(
    rf"\b(?:i|we){_ADVERB}\s+(?:agree(?! with my opponent)|support|affirm|favou?r|endorse)\b"
    rf"|\b(?:i am|i'm|we are|we're){_ADVERB}\s+(?:in favou?r|for (?:the|this) \w+)"
    r"|\b(?:proposition|motion|proposal) is(?: \w+ly)? (?:right|true|correct|good)\b"
)
_AGAINST = AnyCase(
    rf"\b(?:i|we){_ADVERB}\s+(?:disagree|oppose|reject|deny|object)\b"
    rf"|\b(?:i am|i'm|we are|we're){_ADVERB}\s+(?:against|opposed)\b"
    r"|\b(?:proposition|motion|proposal) is(?: \w+ly)? (?:wrong|false|mistaken|bad)\b"
)
_GIVES_UP = AnyCase(
    r"\b(?:i|we)\s+(?:concede|give up|surrender|have no arguments?)\b"
    r"|\bagree with my opponent\b(?! that| on)"
    r"|\bmy opponent is(?: \w+ly)? right\b|\b(?:pro|con) is(?: \w+ly)? right\b"
)


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
    checks = {agent: _paper_checks(parts[agent]) for agent in parts}
    if len(attempt.turns) + 1 == rules.max_turns:
        for agent, text in attempt.actions.items():
            said = [*(turn.actions[agent] for turn in attempt.turns), text]
            parts[agent] |= end_parts(said, task.proposition, _points(task, agent)[0])
    components = zero_sum(parts, scale=1.0, base=0.0) if rules.is_zero_sum else parts
    return Score(components, False, {agent: {"checks": checks[agent]} for agent in parts})


def score_grounded(
    attempt: Attempt[DebateTask], rules: DebateRules, instructions: Mapping[AgentID, str]
) -> Score:
    """Score an attempt by the rule-based formula.

    Args:
        attempt: The attempt.
        rules: Options that the rewards depend on.
        instructions: The prompt of each agent; copying it does not pay.
    """
    measured = {
        agent: _measure(attempt, rules, agent, instructions[agent]) for agent in attempt.actions
    }
    parts = {agent: _parts(each) for agent, each in measured.items()}
    components = zero_sum(parts, scale=0.5, base=0.5) if rules.is_zero_sum else parts
    diagnostics = {agent: {"checks": _checks(each)} for agent, each in measured.items()}
    return Score(components, False, diagnostics)


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
    copied = copied_share(text, known)  # of all sources, so that a mixture is a copy, too
    prose = prose_quality(text, least_words=LEAST_WORDS) * plain_speech(text)
    return prose, ramp(copied, 0.5, 0.1)


@dataclass(frozen=True)
class _Measured:
    point: float
    relevance: float
    reasoning: float
    reply: float | None  # None if there is nothing to reply to
    prose: float
    own: float
    side: float


def _measure(
    attempt: Attempt[DebateTask], rules: DebateRules, agent: AgentID, instructions: str
) -> _Measured:
    text, topic = attempt.actions[agent], _stems_of_task(attempt.task.proposition)
    stems = content_stems(text)
    own, others = _points(attempt.task, agent)
    prose, originality = fair_text(attempt, agent, instructions)
    before = _stems_of(attempt.turns, lambda speaker: speaker == agent)
    fresh = [point for point in own if _share(point, before, topic) < FULL_POINT]
    heard = _stems_of(attempt.turns[-1:], lambda speaker: speaker != agent)
    leaning = _leaning(_weight(own, stems, topic), _weight(others, stems - heard, topic))
    return _Measured(
        point=ramp(_best(fresh, stems, topic), 0.0, FULL_POINT),
        relevance=ramp(len(topic & stems) / len(topic), 0.0, 0.5) if topic else 1.0,
        reasoning=ramp(_count_reasons(text), 0, FULL_REASONS),
        reply=_reply(stems - before, heard - topic) if rules.is_heard else None,
        prose=prose,
        own=originality,
        side=0.0 if _pleads_wrong(text, agent) else ramp(leaning, *WRONG_LEANING),
    )


def _points(task: DebateTask, agent: AgentID) -> tuple[Sequence[str], Sequence[str]]:
    points = (task.pro_points, task.con_points)
    return points if agent == PRO else points[::-1]


def _stems_of(turns: Sequence[Turn], is_wanted: Callable[[AgentID], bool]) -> set[str]:
    said = [text for turn in turns for agent, text in turn.actions.items() if is_wanted(agent)]
    return set().union(*map(content_stems, said))


def _best(points: Sequence[str], stems: Set[str], topic: Set[str]) -> float:
    return max((_share(point, stems, topic) for point in points), default=0.0)


def _weight(points: Sequence[str], stems: Set[str], topic: Set[str]) -> float:
    # Squares, so that one point made in full outweighs many that are touched.
    return math.fsum(_share(point, stems, topic) ** 2 for point in points)


def _leaning(own: float, other: float) -> float:
    # From -1, only points of one's own side, to 1.
    return (other - own) / (other + own) if other + own >= FULL_POINT**2 else 0.0


@lru_cache(maxsize=1024)  # every attempt needs those of its proposition and points
def _stems_of_task(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))


def _share(point: str, stems: Set[str], topic: Set[str]) -> float:
    wanted = _stems_of_task(point) - topic  # words of the proposition do not count
    return len(wanted & stems) / len(wanted) if wanted else 0.0


def _count_reasons(text: str) -> int:
    sentences = [s for s in _SENTENCE.findall(text) if len(s.split()) >= MIN_SENTENCE_WORDS]
    return sum(map(_REASON.is_in, sentences))


def _reply(stems: Set[str], heard: Set[str]) -> float | None:
    if len(heard) < FULL_REPLY:
        return None  # the opponent wrote too little
    return ramp(len(heard & stems), 0, FULL_REPLY)


def _pleads_wrong(text: str, agent: AgentID) -> bool:
    right, wrong = (_FOR, _AGAINST) if agent == PRO else (_AGAINST, _FOR)
    return wrong.count(text) > right.count(text) or _GIVES_UP.is_in(text)


def _parts(measured: _Measured) -> dict[str, float]:
    weights = {"point": POINT, "relevance": RELEVANCE, "reasoning": REASONING}
    if measured.reply is not None:
        weights["reply"] = REPLY
    side = WRONG_SIDE + (1.0 - WRONG_SIDE) * measured.side
    factor = measured.prose * measured.own * side / math.fsum(weights.values())
    on_topic = ramp(measured.relevance + measured.point, 0.0, 1.0)
    values = {
        "point": measured.point,
        "relevance": measured.relevance,
        "reasoning": on_topic * measured.reasoning,
        "reply": on_topic * (measured.reply or 0.0),
    }
    return {name: factor * weight * values[name] for name, weight in weights.items()}


def _checks(measured: _Measured) -> Json:
    checks = [
        _check("prose", measured.prose >= GOOD, "write whole, varied sentences in plain English."),
        _check("own words", measured.own >= GOOD, "say something new, in words of your own."),
        _check("your side", measured.side == 1.0, "argue for the side that you were given."),
        _check("topic", measured.relevance == 1.0, "take up the words of the proposition."),
        _check("reasons", measured.reasoning == 1.0, "say why: give reasons and an example."),
        _check("new point", measured.point == 1.0, "bring a strong point that was not made yet."),
    ]
    if measured.reply is not None:
        advice = "answer what your opponent said."
        checks.append(_check("reply", measured.reply == 1.0, advice))
    return checks


def _paper_checks(parts: Mapping[str, float]) -> Json:
    return [
        _check(name, value > 0.0, f"there is no {name} in it.") for name, value in parts.items()
    ]


def _check(name: str, passed: object, advice: str) -> dict[str, Json]:
    status = "good" if passed else "weak"
    return {
        "name": name,
        "passed": bool(passed),
        "status": status,
        "details": [] if passed else [advice],
    }

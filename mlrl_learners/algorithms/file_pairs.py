"""Preference pairs from a file of episodes: answers to the same prompts with different returns.

Answers are ranked as in `mlrl_learners.algorithms.rollout_pairs`: by the team's return if all
agents have the same returns, otherwise by each agent's own.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlrl_learners.algorithms.rollout_pairs import are_returns_equal
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.preferences import largest_gap_pairs
from mlrl_learners.runs.demonstrations import JointTurn, read_joint_turns
from mlrl_learners.types import AgentID, Conversation

__all__ = ["TurnPair", "ranked_turns"]


@dataclass(frozen=True, slots=True)
class TurnPair:
    """Two joint answers of a file to the same prompts.

    Attributes:
        better: Joint answer with the higher return.
        worse: Joint answer with the lower return.
        gap: Return of the better minus that of the worse one, above 0.
        agent: Agent whose return ranks; None for the mean over the team.
    """

    better: JointTurn
    worse: JointTurn
    gap: float
    agent: AgentID | None = None


def ranked_turns(
    path: Path,
    num_pairs: int,
    agents: Sequence[AgentID],
    *,
    own_answers: bool,
    conversation: bool = False,
) -> list[list[TurnPair]]:
    """Return the pairs with the largest gaps of each decision point of a file.

    A decision point is the joint observation of all agents. Those without a pair, and turns in
    which no trained agent acts, are left out.

    Args:
        path: File of `mlrl collect` with several episodes per task.
        num_pairs: Largest number of pairs per decision point (and agent, where returns differ
            between agents), at least 1.
        agents: The trained agents.
        own_answers: If true, decision points at which returns differ between agents give pairs of
            each agent's answers, ranked by their mean return over joint answers. If false, one
            such decision point makes each agent's return rank joint answers in the whole file.
        conversation: Whether models read earlier turns, which then belong to a decision point.

    Raises:
        ConfigError: If the file is missing, or has no two answers of these agents with different
            returns.
    """
    found = read_joint_turns(path)
    _check_agents(path, found, agents)
    points: dict[Hashable, list[JointTurn]] = {}
    for turn in found:
        if any(agent in agents for agent in turn.actions):
            points.setdefault(_point(turn, conversation=conversation), []).append(turn)
    all_shared = all(map(_has_shared_returns, points.values()))
    pairs = []
    for turns in points.values():
        if _has_shared_returns(turns) if own_answers else all_shared:
            pairs.append(_turn_pairs(turns, lambda turn: turn.earned, num_pairs))
        else:
            pairs.append([p for a in agents for p in _pairs_of(turns, a, num_pairs, own_answers)])
    if not any(pairs):
        raise ConfigError(_without_pairs(path, max(map(len, points.values()), default=0)))
    return [each for each in pairs if each]


def _point(turn: JointTurn, *, conversation: bool) -> Hashable:
    """Return the decision point of a turn: what the models read in it."""
    # A `Conversation` equals its text, whatever its earlier turns.
    return tuple(
        (agent, text, text.earlier if conversation and isinstance(text, Conversation) else ())
        for agent, text in sorted(turn.observations.items())
    )


def _has_shared_returns(turns: Sequence[JointTurn]) -> bool:
    return all(are_returns_equal([[value] for value in turn.earned_by.values()]) for turn in turns)


def _turn_pairs(
    turns: Sequence[JointTurn],
    value: Callable[[JointTurn], float],
    num_pairs: int,
    agent: AgentID | None = None,
) -> list[TurnPair]:
    values = [value(turn) for turn in turns]
    return [
        TurnPair(turns[better], turns[worse], values[better] - values[worse], agent)
        for better, worse in largest_gap_pairs(values, num_pairs)
    ]


def _pairs_of(
    turns: Sequence[JointTurn], agent: AgentID, num_pairs: int, own_answers: bool
) -> list[TurnPair]:
    """Return the pairs at a decision point that the return of one agent that acts ranks."""
    paid = [turn for turn in turns if agent in turn.earned_by and agent in turn.actions]
    if own_answers:
        paid = _merged(paid, agent)
    return _turn_pairs(paid, lambda turn: turn.earned_by[agent], num_pairs, agent)


def _merged(turns: Sequence[JointTurn], agent: AgentID) -> list[JointTurn]:
    """Return one turn for each distinct answer of an agent, with the mean of its returns."""
    same: dict[tuple[str, bool], list[JointTurn]] = {}
    for turn in turns:
        same.setdefault((turn.actions[agent], turn.is_whole[agent]), []).append(turn)
    return [
        replace(first, earned_by={agent: math.fsum(t.earned_by[agent] for t in group) / len(group)})
        for group in same.values()
        for first in group[:1]
    ]


def _check_agents(path: Path, turns: Sequence[JointTurn], agents: Sequence[AgentID]) -> None:
    known = list(dict.fromkeys(agent for turn in turns for agent in turn.actions))
    if known and not set(known) & set(agents):
        raise ConfigError(
            f"{str(path)!r} holds nothing to learn from for {', '.join(agents)}: its agents are "
            f"{', '.join(known)}"
        )


def _without_pairs(path: Path, most_answers: int) -> str:
    """Return the error message for a file without pairs.

    Args:
        path: The file.
        most_answers: Largest number of joint answers at a decision point.
    """
    if most_answers > 1:
        return (
            f"in {str(path)!r} all joint answers to the same prompts earned the same; collect more "
            "--samples, or tasks that are neither too easy nor too hard"
        )
    return (
        f"{str(path)!r} holds no two joint answers to the same prompts of which one earned more; "
        "collect with --samples 2 or more"
    )

"""Pairs of answers to the same prompts of which one earned more, from a file of episodes.

As in `mlrl_learners.algorithms.pairs`, the team's return ranks joint answers where all agents earn
the same, and each agent's own return ranks where they do not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlrl_learners.algorithms.pairs import is_same
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.preferences import largest_gap_pairs
from mlrl_learners.runs.demonstrations import JointTurn, read_joint_turns
from mlrl_learners.types import AgentID

__all__ = ["TurnPair", "ranked_turns"]


@dataclass(frozen=True, slots=True)
class TurnPair:
    """Two joint answers of a file to the same prompts, of which one earned more.

    Attributes:
        better: The one that earned more.
        worse: The other one.
        gap: Return of the better one less that of the worse one, above 0.
        agent: Whose return it is; None for the mean over the team.
    """

    better: JointTurn
    worse: JointTurn
    gap: float
    agent: AgentID | None = None


def ranked_turns(
    path: Path, num_pairs: int, agents: Sequence[AgentID], *, own_answers: bool
) -> list[list[TurnPair]]:
    """Return, for each decision point of a file, its pairs of largest gap.

    A decision point is what all agents read. Those without a pair are left out. Where pay is not
    shared at one of them, each agent's own return ranks.

    Args:
        path: A file of `mlrl collect` with several episodes a task.
        num_pairs: Most pairs of a decision point (and of an agent, where pay is not shared), at
            least 1.
        agents: Who is to learn from them.
        own_answers: Whether an agent's own return ranks its own answers, each by the mean over the
            joint answers it was part of, at the decision points where pay is not shared; or else
            joint answers, for all decision points of a file in which it is not shared at one.

    Raises:
        ConfigError: If the file is missing, holds no two answers that differ in worth, or none of
            the agents.
    """
    found = read_joint_turns(path)
    _check_agents(path, found, agents)
    points: dict[tuple[tuple[AgentID, str], ...], list[JointTurn]] = {}
    for turn in found:
        points.setdefault(tuple(sorted(turn.observations.items())), []).append(turn)
    all_shared = all(map(_is_point_shared, points.values()))
    pairs = []
    for turns in points.values():
        if _is_point_shared(turns) if own_answers else all_shared:
            pairs.append(_turn_pairs(turns, lambda turn: turn.earned, num_pairs))
        else:
            pairs.append([p for a in agents for p in _pairs_of(turns, a, num_pairs, own_answers)])
    if not any(pairs):
        raise ConfigError(_without_pairs(path, max(map(len, points.values()), default=0)))
    return [each for each in pairs if each]


def _is_point_shared(turns: Sequence[JointTurn]) -> bool:
    return all(is_same([[earned] for earned in turn.earned_by.values()]) for turn in turns)


def _turn_pairs(
    turns: Sequence[JointTurn],
    worth: Callable[[JointTurn], float],
    num_pairs: int,
    agent: AgentID | None = None,
) -> list[TurnPair]:
    values = [worth(turn) for turn in turns]
    return [
        TurnPair(turns[better], turns[worse], values[better] - values[worse], agent)
        for better, worse in largest_gap_pairs(values, num_pairs)
    ]


def _pairs_of(
    turns: Sequence[JointTurn], agent: AgentID, num_pairs: int, own_answers: bool
) -> list[TurnPair]:
    """Return the pairs of one agent's own pay at a decision point of a file."""
    paid = [turn for turn in turns if agent in turn.earned_by]
    if own_answers:
        paid = _merged([turn for turn in paid if agent in turn.actions], agent)
    return _turn_pairs(paid, lambda turn: turn.earned_by[agent], num_pairs, agent)


def _merged(turns: Sequence[JointTurn], agent: AgentID) -> list[JointTurn]:
    """Return one turn for each different answer of an agent, which earned it the mean."""
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
            f"{str(path)!r} holds nothing to learn from for {', '.join(agents)}: those who answer "
            f"there are {', '.join(known)}"
        )


def _without_pairs(path: Path, most_answers: int) -> str:
    """Say what is missing where a decision point was answered so often at most."""
    if most_answers > 1:
        return (
            f"in {str(path)!r} all joint answers to the same prompts earned the same; collect more "
            "--samples, or tasks that are neither too easy nor too hard"
        )
    return (
        f"{str(path)!r} holds no two joint answers to the same prompts of which one earned more; "
        "collect with --samples 2 or more"
    )

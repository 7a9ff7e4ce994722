"""Players of the agents of an episode, and their answers to a batch of observations.

An opponent plays an agent for a whole episode. At every node of a rollout it gives one answer, so
that a tree does not branch where only opponents act, and the answers of a group meet the same one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.types import Actor, AgentID, Completion, Spectator
from mlrl_learners.types.contract import check_answers

__all__ = ["Opponent", "Seats", "answer_all", "names_of"]


@dataclass(frozen=True, slots=True)
class Opponent:
    """Player of an agent, beside the actor that is trained or evaluated.

    Attributes:
        name: Name in records and metrics, such as `script:perfect` or `snapshots:20`.
        actor: The actor; may play several agents and episodes.
    """

    name: str
    actor: Actor


Seats = Mapping[AgentID, Opponent]
"""The opponents of an episode, by agent; the actor plays the agents that are left out."""

Observations = Mapping[AgentID, str]
Answers = Mapping[AgentID, list[Completion]]


def names_of(seats: Seats) -> dict[AgentID, str]:
    """Return the names of the opponents of an episode, by agent."""
    return {agent: opponent.name for agent, opponent in seats.items()}


def answer_all(
    observations: Sequence[Observations],
    actor: Actor,
    seats: Sequence[Seats],
    envs: Sequence[Any],
    *,
    num_samples: int,
    explore: bool,
) -> list[Answers]:
    """Return the answers of all players, each player asked once.

    Args:
        observations: Joint observations of the agents that act.
        actor: Plays all agents that have no opponent; gives `num_samples` answers.
        seats: Opponents in the episode of each observation; each gives one answer.
        envs: Environment of each observation, for players that are a `Spectator`.
        num_samples: Number of answers of the actor to each observation.
        explore: Sample if true, answer greedily if false.

    Raises:
        ContractError: If a player does not answer what it was asked.
    """
    answers: list[dict[AgentID, list[Completion]]] = [{} for _ in observations]
    for player, is_opponent, asked in _by_player(observations, actor, seats):
        if isinstance(player, Spectator):
            player.watch([envs[number] for number in asked])
        texts, count = list(asked.values()), 1 if is_opponent else num_samples
        given = player.act(texts, num_samples=count, explore=explore)
        check_answers(given, texts, count, f"{type(player).__name__}.act")
        for number, answer in zip(asked, given, strict=True):
            answers[number] |= answer
    return [
        {agent: answer[agent] for agent in observation}
        for observation, answer in zip(observations, answers, strict=True)
    ]


def _by_player(
    observations: Sequence[Observations], actor: Actor, seats: Sequence[Seats]
) -> Iterator[tuple[Actor, bool, dict[int, Observations]]]:
    """Yield each player, whether it is an opponent, and what it is asked, by number.

    The actor itself may also be an opponent; it is then asked twice.
    """
    players: dict[tuple[bool, int], tuple[Actor, dict[int, dict[AgentID, str]]]] = {}
    for number, (observation, seat) in enumerate(zip(observations, seats, strict=True)):
        for agent, text in observation.items():
            is_opponent = agent in seat
            player = seat[agent].actor if is_opponent else actor
            _, asked = players.setdefault((is_opponent, id(player)), (player, {}))
            asked.setdefault(number, {})[agent] = text
    for (is_opponent, _), (player, asked) in sorted(players.items(), key=lambda item: item[0][0]):
        yield player, is_opponent, dict(asked)

"""Demonstrations and joint turns read from files of episodes, as training data.

Turns of opponents are left out: as in training, only the learner's own agents are learnt from.
The files are those of `mlrl collect` and `mlrl evaluate --episodes`. A torn last line is left out.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.keys import OPPONENTS
from mlrl_learners.runs.stored import (
    UNREADABLE,
    Record,
    StoredTurn,
    decode_turns,
    number,
    require_keys,
    texts,
)
from mlrl_learners.types import AgentID, Conversation, continued

__all__ = ["Demonstration", "JointTurn", "read_demonstrations", "read_joint_turns"]

ParsedT = TypeVar("ParsedT")


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One agent's part in one turn.

    Attributes:
        agent: The agent.
        observation: Text it read.
        actions: Agent -> text it wrote in this turn, for every agent.
        is_whole: Whether this agent ended its answer itself, not the length limit.
        next_observation: Text it read in its next turn, which may come after turns in which it
            waited; None if there was none.
    """

    agent: AgentID
    observation: str
    actions: Mapping[AgentID, str]
    is_whole: bool = True
    next_observation: str | None = None


@dataclass(frozen=True, slots=True)
class JointTurn:
    """One turn of a team with its undiscounted reward-to-go.

    Attributes:
        observations: Agent -> text it read.
        actions: Agent -> text it wrote.
        is_whole: Agent -> whether it ended its answer itself, not the length limit.
        earned: Sum of the team rewards of this turn and all later ones; a team reward is the mean
            over all agents of the episode that no opponent plays.
        earned_by: Agent that acts or is rewarded in this turn -> sum of its own rewards of this
            turn and all later ones.
    """

    observations: Mapping[AgentID, str]
    actions: Mapping[AgentID, str]
    is_whole: Mapping[AgentID, bool]
    earned: float
    earned_by: Mapping[AgentID, float] = field(default_factory=dict)


def read_demonstrations(path: Path, filter_reward: float | None = None) -> list[Demonstration]:
    """Return all agents' turns of the episodes whose team return is at least `filter_reward`.

    Raises:
        ConfigError: If the file is missing, or a line is not an episode.
    """
    episodes = _read(path, _demonstrations)
    return [
        shown
        for team_return, demonstrations in episodes
        if filter_reward is None or team_return >= filter_reward
        for shown in demonstrations
    ]


def read_joint_turns(path: Path) -> list[JointTurn]:
    """Return every turn of every episode.

    Raises:
        ConfigError: If the file is missing, or a line is not an episode.
    """
    return [turn for turns in _read(path, _joint_turns) for turn in turns]


def _read(path: Path, parse: Callable[[Record], ParsedT]) -> list[ParsedT]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        fix = "mlrl collect writes such a file"
        raise ConfigError(f"cannot read episodes: {error.strerror} {str(path)!r}; {fix}") from None
    found = []
    for line_number, line in enumerate(lines, start=1):
        try:
            found.append(parse(json.loads(line)))
        except UNREADABLE:
            if line_number == len(lines):  # empty or torn
                break
            raise ConfigError(f"{path}:{line_number} is not an episode of mlrl collect") from None
    return found


def _demonstrations(record: Record) -> tuple[float, list[Demonstration]]:
    turns = _turns(record, ("observations", "actions"))
    opponents = texts(record.get(OPPONENTS))
    return float(number(record["return"])), [
        Demonstration(
            agent=agent,
            observation=turn.observations[agent],
            actions=turn.actions,
            is_whole=turn.is_whole(agent),
            next_observation=_next_read(turns[place + 1 :], agent),
        )
        for place, turn in enumerate(turns)
        for agent in turn.actions
        if agent not in opponents
    ]


def _next_read(turns: Sequence[StoredTurn], agent: AgentID) -> str | None:
    return next((turn.observations[agent] for turn in turns if agent in turn.observations), None)


def _joint_turns(record: Record) -> list[JointTurn]:
    decoded = _turns(record, ("observations", "actions", "rewards"))
    opponents = texts(record.get(OPPONENTS))
    turns = [_own_turn(turn, opponents) for turn in decoded] if opponents else decoded
    num_agents = (len(turns[0].rewards) if turns else 0) or 1  # agents that left early still count
    rewards = [math.fsum(turn.rewards.values()) / num_agents for turn in turns]
    return [
        JointTurn(
            observations=turn.observations,
            actions=turn.actions,
            is_whole={agent: turn.is_whole(agent) for agent in turn.actions},
            earned=math.fsum(rewards[place:]),
            earned_by={
                agent: math.fsum(later.rewards.get(agent, 0.0) for later in turns[place:])
                for agent in {**turn.actions, **turn.rewards}
            },
        )
        for place, turn in enumerate(turns)
        if turn.actions or not opponents
    ]


def _own_turn(turn: StoredTurn, opponents: Collection[AgentID]) -> StoredTurn:
    """Return a turn without observations, answers and rewards of opponents."""
    names = ("observations", "actions", "rewards")
    whole = {name: getattr(turn, name).items() for name in names}
    own = {
        name: {agent: value for agent, value in values if agent not in opponents}
        for name, values in whole.items()
    }
    return replace(turn, **own)


def _turns(record: Record, names: Sequence[str]) -> Sequence[StoredTurn]:
    """Decode turns that must have some keys; observations know the turns before."""
    for turn in record["turns"]:
        require_keys(turn, names)
    turns: list[StoredTurn] = []
    earlier: dict[AgentID, tuple[tuple[str, str], ...]] = {}
    for turn in decode_turns(record):
        told = {a: Conversation(text, earlier.get(a, ())) for a, text in turn.observations.items()}
        turns.append(replace(turn, observations=told))
        acted = {a: text for a, text in turn.actions.items() if a in turn.observations}
        earlier = continued(turn.observations, acted, earlier)
    return turns

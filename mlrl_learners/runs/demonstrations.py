"""What was played, read back from files of episodes: what an agent read, wrote and read next.

The files are those of `mlrl collect` and `mlrl evaluate --episodes`. A torn last line is left out.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mlrl_learners.errors import ConfigError
from mlrl_learners.types import AgentID

__all__ = ["Demonstration", "JointTurn", "read_demonstrations", "read_joint_turns"]

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One agent's part in one turn.

    Attributes:
        agent: Who it was.
        observation: What it read.
        actions: What every agent wrote.
        is_whole: Whether the agent ended its answer by itself; false where it was cut.
        next_observation: What it read then; None where the episode was over.
    """

    agent: AgentID
    observation: str
    actions: Mapping[AgentID, str]
    is_whole: bool = True
    next_observation: str | None = None


@dataclass(frozen=True, slots=True)
class JointTurn:
    """What a team did in one turn, and what it earned from there on.

    Attributes:
        observations: What each agent read.
        actions: What each agent wrote.
        is_whole: For each agent, whether it ended its answer by itself.
        earned: Sum of the team's rewards of this turn and those after it, undiscounted; a team's
            reward is the mean over its agents.
        earned_by: For each agent that answers or is paid in this turn, the sum of its own rewards
            of this turn and those after it, undiscounted.
    """

    observations: Mapping[AgentID, str]
    actions: Mapping[AgentID, str]
    is_whole: Mapping[AgentID, bool]
    earned: float
    earned_by: Mapping[AgentID, float] = field(default_factory=dict)


def read_demonstrations(path: Path, filter_reward: float | None = None) -> list[Demonstration]:
    """Return every agent's turns of the episodes whose team return is at least `filter_reward`.

    Raises:
        ConfigError: If the file is missing, or a line is no episode.
    """
    episodes = _read(path, lambda episode: (float(episode["return"]), _demonstrations(episode)))
    return [
        shown
        for earned, demonstrations in episodes
        if filter_reward is None or earned >= filter_reward
        for shown in demonstrations
    ]


def read_joint_turns(path: Path) -> list[JointTurn]:
    """Return every turn of every episode.

    Raises:
        ConfigError: If the file is missing, or a line is no episode.
    """
    return [turn for turns in _read(path, _joint_turns) for turn in turns]


def _read(path: Path, parse: Callable[[Mapping[str, Any]], Parsed]) -> list[Parsed]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        fix = "mlrl collect writes such a file"
        raise ConfigError(f"cannot read episodes: {error.strerror} {str(path)!r}; {fix}") from None
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(parse(json.loads(line)))
        except (ValueError, LookupError, TypeError, AttributeError):
            if number == len(lines):  # nothing, or torn
                break
            raise ConfigError(f"{path}:{number} is not an episode of mlrl collect") from None
    return found


def _demonstrations(episode: Mapping[str, Any]) -> list[Demonstration]:
    turns = episode["turns"]
    following = [turn["observations"] for turn in turns[1:]]
    return [
        Demonstration(
            agent=agent,
            observation=turn["observations"][agent],
            actions=turn["actions"],
            is_whole=_is_whole(turn, agent),
            next_observation=after.get(agent),
        )
        for turn, after in zip(turns, [*following, {}], strict=True)
        for agent in turn["actions"]
    ]


def _joint_turns(episode: Mapping[str, Any]) -> list[JointTurn]:
    turns = episode["turns"]
    num_agents = len(turns[0]["rewards"]) if turns else 1  # who has left still counts
    rewards = [math.fsum(turn["rewards"].values()) / num_agents for turn in turns]
    return [
        JointTurn(
            observations=turn["observations"],
            actions=turn["actions"],
            is_whole={agent: _is_whole(turn, agent) for agent in turn["actions"]},
            earned=math.fsum(rewards[number:]),
            earned_by={
                agent: math.fsum(later["rewards"].get(agent, 0.0) for later in turns[number:])
                for agent in {**turn["actions"], **turn["rewards"]}
            },
        )
        for number, turn in enumerate(turns)
    ]


def _is_whole(turn: Mapping[str, Any], agent: AgentID) -> bool:
    return bool(turn.get("finish_reasons", {}).get(agent, "stop") == "stop")

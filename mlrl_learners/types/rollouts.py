"""Rollout trees, episodes and the options of their collection."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from mlrl_learners.errors import ConfigError
from mlrl_learners.types.completions import Completion

__all__ = [
    "AgentID",
    "Branching",
    "Episode",
    "EpisodeTurn",
    "FailedEpisode",
    "JointMode",
    "JointStep",
    "Node",
    "Rollout",
    "RolloutConfig",
]

AgentID = str
JointMode = Literal["aligned", "cross", "replay"]
Branching = Literal["tree", "chain", "greedy"]


@dataclass(frozen=True, slots=True)
class JointStep:
    """One joint action of a node and its result.

    Attributes:
        samples: Index of each agent's completion at the node.
        rewards: Reward of each agent for this step.
        components: Named parts of each agent's reward.
        infos: Further information of the environment for each agent (JSON values).
        terminated: Whether the task ended here.
        truncated: Whether the turn limit was reached here.
        child: Next node; None if the episode ended or the rollout does not continue from here.
        next_observations: Next observation of each agent that acts in the next turn if there is no
            child; empty if the task ended.
        next_waiting: Next observation of each agent that waits in the next turn if there is no
            child.
    """

    samples: Mapping[AgentID, int]
    rewards: Mapping[AgentID, float]
    components: Mapping[AgentID, Mapping[str, float]]
    infos: Mapping[AgentID, Mapping[str, object]]
    terminated: bool
    truncated: bool
    child: "Node | None" = None
    next_observations: Mapping[AgentID, str] = field(default_factory=dict)
    next_waiting: Mapping[AgentID, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """Decision point: one prompt per acting agent, G completions of it, and joint actions of these.

    An agent of the episode acts here, waits here (and acts in a later turn), or has left.

    Attributes:
        turn: Index of the turn, 0 at the root.
        observations: Observation of each agent that acts.
        completions: The G samples of each agent that acts for its prompt.
        steps: The played joint actions.
        waiting: Observation of each agent that waits; empty if the environment gave none.
    """

    turn: int
    observations: Mapping[AgentID, str]
    completions: Mapping[AgentID, tuple[Completion, ...]]
    steps: tuple[JointStep, ...]
    waiting: Mapping[AgentID, str] = field(default_factory=dict)

    def walk(self) -> Iterator["Node"]:
        """Yield this node and every node below it, parents first."""
        yield self
        for step in self.steps:
            if step.child is not None:
                yield from step.child.walk()


@dataclass(frozen=True, slots=True)
class Rollout:
    """Tree of joint steps of one task; a chain has one child per node.

    Attributes:
        artificial_limit: Whether the environment declares that its turn limit is not part of the
            task (`metadata["artificial_limit"]`), so that a critic's value may follow it.
        opponents: Names of the opponents, by the agent that they play.
        env_name: Environment of the rollout among several of a run; empty where there is one.
    """

    env_id: str
    task_id: str
    agents: tuple[AgentID, ...]
    root: Node
    seed: int = 0
    artificial_limit: bool = False
    opponents: Mapping[AgentID, str] = field(default_factory=dict)
    env_name: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeTurn:
    """One turn of an episode, by agent.

    Agents with a completion acted. Agents with a reward and without a completion waited.
    """

    observations: Mapping[AgentID, str]
    completions: Mapping[AgentID, Completion]
    rewards: Mapping[AgentID, float]
    components: Mapping[AgentID, Mapping[str, float]]
    infos: Mapping[AgentID, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Episode:
    """One played episode.

    Attributes:
        returns: Undiscounted sum of each agent's rewards.
        opponents: Names of the opponents, by the agent that they play.
        env_name: Environment of the episode among several; empty where there is one.
    """

    task_id: str
    seed: int
    turns: tuple[EpisodeTurn, ...]
    solved: bool
    returns: Mapping[AgentID, float]
    opponents: Mapping[AgentID, str] = field(default_factory=dict)
    env_name: str = ""


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """Episode that failing infrastructure ended; excluded from training and from all means."""

    env_id: str
    task_id: str
    seed: int
    error: str
    message: str


@dataclass(frozen=True)
class RolloutConfig:
    """Collection of rollouts.

    Attributes:
        num_samples: Number of completions per agent at each node, G, at least 1.
        joint_mode: `"aligned"` plays the j-th answers of all agents together (G joint actions);
            `"cross"` plays every combination of answers (G^N joint actions); `"replay"` plays every
            answer of an agent beside the first answers of the others (1 + N (G - 1) joint actions).
        branching: `"tree"` continues from every joint action, `"chain"` from one drawn at random,
            `"greedy"` from the one of highest mean reward over agents.
        num_rollouts: Number of rollouts of each task, at least 1.
        max_resamples: Most further collections that replace tasks without spread in an iteration,
            at least 0; see `mlrl_learners.training.collection`.
    """

    num_samples: int = 4
    joint_mode: JointMode = "aligned"
    branching: Branching = "tree"
    num_rollouts: int = 1
    max_resamples: int = 0

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        for name, least in (("num_samples", 1), ("num_rollouts", 1), ("max_resamples", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name, known in (
            ("joint_mode", get_args(JointMode)),
            ("branching", get_args(Branching)),
        ):
            if getattr(self, name) not in known:
                words = f"{', '.join(known[:-1])} or {known[-1]}"
                raise ConfigError(f"{name} must be {words}, got {getattr(self, name)!r}")

"""What learners and the loop exchange: completions, rollout trees and two protocols.

Shape letters used throughout: `B` rows, `T` tokens, `G` samples a group, `N` agents,
`V` vocabulary.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from mlrl_learners.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Actor",
    "AgentID",
    "Branching",
    "Completion",
    "Episode",
    "EpisodeTurn",
    "FailedEpisode",
    "JointMode",
    "JointStep",
    "Learner",
    "Node",
    "Nucleus",
    "Rollout",
    "RolloutConfig",
    "Spectator",
    "Usage",
]

AgentID = str
JointMode = Literal["aligned", "cross"]
Branching = Literal["tree", "chain"]
FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost, in tokens.

    Attributes:
        prompt_tokens: Tokens that were read.
        completion_tokens: Tokens that were written.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Nucleus:
    """The token ids that each token of an answer was drawn from: what top-p and top-k left.

    Attributes:
        token_ids: The ids of all tokens, one token's after the other's, int32 `[M]`.
        sizes: How many of `token_ids` belong to each token, at least 1, int32 `[T]`; the token
            itself is one of them.
        log_masses: Natural logarithm of the probability that each nucleus held in the whole
            distribution, float32 `[T]`. Added to a log-probability, it gives that of the whole.
    """

    token_ids: "NDArray[np.int32]"
    sizes: "NDArray[np.int32]"
    log_masses: "NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled answer; its tokens and log-probabilities travel with the text.

    Attributes:
        text: Decoded answer, without special tokens.
        prompt_ids: Token ids the model read, padding excluded. Empty for actors without tokens.
        token_ids: Sampled ids, the end-of-sequence token included where it was sampled.
        logprobs: Natural log-probability of each of `token_ids` under the distribution it was drawn
            from: softmax(logits / temperature), renormalised over `nucleus` where there is one.
        finish_reason: `"stop"` when the model ended by itself, `"length"` when it was cut.
        usage: What it cost where its ids do not tell: counted by a server, or with the drafts
            that led to it.
        nucleus: What each of `token_ids` was drawn from; None for the whole vocabulary. It takes
            no part in comparisons, and files of runs and episodes leave it out.
    """

    text: str
    prompt_ids: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage | None = None
    nucleus: Nucleus | None = field(default=None, compare=False, hash=False, repr=False)

    @property
    def cost(self) -> Usage:
        """Tokens read and written for this answer."""
        return self.usage or Usage(len(self.prompt_ids), len(self.token_ids))


@dataclass(frozen=True, slots=True)
class JointStep:
    """One joint action played at a node, and what came of it.

    Attributes:
        samples: For each agent, which of the node's completions it played.
        rewards: For each agent, the reward of this step.
        components: For each agent, named parts of the reward.
        infos: For each agent, what else the environment said (JSON values).
        terminated: The task ended here by itself; nothing follows.
        truncated: The turn limit was reached here.
        child: The node that follows, or None where the episode ended or was not walked further.
        next_observations: Where there is no child, what each agent would have read next; empty
            where the task ended by itself, or where nobody asked.
    """

    samples: Mapping[AgentID, int]
    rewards: Mapping[AgentID, float]
    components: Mapping[AgentID, Mapping[str, float]]
    infos: Mapping[AgentID, Mapping[str, object]]
    terminated: bool
    truncated: bool
    child: "Node | None" = None
    next_observations: Mapping[AgentID, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """A decision point: one prompt an agent, G completions of it, the joint actions made of them.

    Attributes:
        turn: 0 at the root.
        observations: What each agent read.
        completions: For each agent, its G samples for that same prompt.
        steps: The joint actions that were played.
    """

    turn: int
    observations: Mapping[AgentID, str]
    completions: Mapping[AgentID, tuple[Completion, ...]]
    steps: tuple[JointStep, ...]

    def walk(self) -> Iterator["Node"]:
        """Yield this node and every node below it, parents first."""
        yield self
        for step in self.steps:
            if step.child is not None:
                yield from step.child.walk()


@dataclass(frozen=True, slots=True)
class Rollout:
    """A tree of joint steps that share one task; a chain has one child a node.

    Attributes:
        artificial_limit: Whether the environment says that its turn limit is no part of the task
            (`metadata["artificial_limit"]`). What agents read at the limit is then what they would
            have gone on from, and a critic may estimate what follows.
    """

    env_id: str
    task_id: str
    agents: tuple[AgentID, ...]
    root: Node
    seed: int = 0
    artificial_limit: bool = False


@dataclass(frozen=True, slots=True)
class EpisodeTurn:
    """One turn of a line of play."""

    observations: Mapping[AgentID, str]
    completions: Mapping[AgentID, Completion]
    rewards: Mapping[AgentID, float]
    components: Mapping[AgentID, Mapping[str, float]]
    infos: Mapping[AgentID, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Episode:
    """One line of play from reset to the end.

    Attributes:
        returns: For each agent, the undiscounted sum of its rewards.
    """

    task_id: str
    seed: int
    turns: tuple[EpisodeTurn, ...]
    solved: bool
    returns: Mapping[AgentID, float]


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """An episode that infrastructure broke; kept out of training and out of every mean."""

    env_id: str
    task_id: str
    seed: int
    error: str
    message: str


@dataclass(frozen=True)
class RolloutConfig:
    """How episodes are walked; learners never see it.

    Attributes:
        num_samples: Completions an agent at each node, G, at least 1.
        joint_mode: `"aligned"` plays the j-th answers together (G joint actions); `"cross"` plays
            every combination (G to the power of the number of agents).
        branching: `"tree"` goes on from every joint action, `"chain"` from one drawn at random.
    """

    num_samples: int = 4
    joint_mode: JointMode = "aligned"
    branching: Branching = "tree"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        if self.num_samples < 1:
            raise ConfigError(f"num_samples must be at least 1, got {self.num_samples}")
        if self.joint_mode not in ("aligned", "cross"):
            raise ConfigError(f"joint_mode must be aligned or cross, got {self.joint_mode!r}")
        if self.branching not in ("tree", "chain"):
            raise ConfigError(f"branching must be tree or chain, got {self.branching!r}")


@runtime_checkable
class Actor(Protocol):
    """Anything that can play: a model, a script, an endpoint."""

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer many joint observations at once.

        Args:
            observations: One mapping a node, agents to what they read.
            num_samples: Answers an agent gives to each observation.
            explore: Sample when true, answer greedily when false.

        Returns:
            One mapping an observation, in order: agents to exactly `num_samples` completions.
        """
        ...


@runtime_checkable
class Spectator(Actor, Protocol):
    """An actor that is shown the environments it answers for, with all that agents must not see.

    For oracles and studies; whoever plays episodes shows them before every turn.
    """

    def watch(self, envs: Sequence[Any]) -> None:
        """Take note of the environments whose observations come next, in the same order."""
        ...


@runtime_checkable
class Learner(Actor, Protocol):
    """An actor that improves.

    It may offer an attribute `rollout: RolloutConfig`, the way it wants episodes walked; the loop
    uses it unless the caller says otherwise. A method `check_rollout(rollout: RolloutConfig)` may
    refuse a way of walking by a `ConfigError`, before anything is played, and a method
    `check_env(env)` an environment that lacks what its options build on. A method
    `plan_updates(num_updates: int)` is told how many updates the whole run has, those before a
    resume included, before anything is restored or written; it may raise a `ConfigError`. With an
    attribute `offline` that is true it learns from files: no episode is played for it, and `update`
    is given no rollouts.
    """

    def update(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        """Learn from rollouts and return metrics, plain finite floats by name."""
        ...

    def save(self, path: Path) -> None:
        """Write everything that `load` needs to go on exactly here into the folder `path`."""
        ...

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        ...

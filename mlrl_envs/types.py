"""Data types and protocols that the parts of an environment share.

The state of an environment is its task and the turns played so far; both are frozen and picklable.
Environments can therefore be copied, pickled, stepped as a batch and scored again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeGuard, TypeVar, runtime_checkable

from mlrl_envs.services import ChatModel, Messages, ProgramRunner, TextScorer, TextToScore

if TYPE_CHECKING:
    from mlrl_envs.spaces import UnicodeText

__all__ = [
    "AgentID",
    "Attempt",
    "BatchedEnv",
    "ChatModel",
    "Info",
    "Json",
    "Messages",
    "ProgramRunner",
    "ResetResult",
    "Score",
    "StepResult",
    "Task",
    "TaskFamily",
    "TextEnv",
    "TextScorer",
    "TextToScore",
    "Turn",
    "is_batched",
]

AgentID = str
Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Info = dict[str, Json]

StepResult = tuple[
    dict[AgentID, str],
    dict[AgentID, float],
    dict[AgentID, bool],
    dict[AgentID, bool],
    dict[AgentID, Info],
]
"""Observations, rewards, terminations, truncations and infos, by agent."""

# Observations and infos, by agent.
ResetResult = tuple[dict[AgentID, str], dict[AgentID, Info]]

ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Task:
    """One row of a data set; `mlrl_envs.tasks` adds the fields of each family.

    Attributes:
        task_id: Unique and stable within a data set, e.g. `"HumanEval/3"`.
    """

    task_id: str


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one joint action.

    Attributes:
        components: For each agent, named parts of its reward; the reward is their sum.
        solved: Whether the task is solved: every test passes, or the answer is right.
        diagnostics: For each agent, public facts that feedback may show: deterministic JSON
            values that contain no hidden tests, answers, times or memory addresses.
    """

    components: Mapping[AgentID, Mapping[str, float]]
    solved: bool
    diagnostics: Mapping[AgentID, Mapping[str, Json]] = field(default_factory=dict)

    def reward(self, agent: AgentID) -> float:
        """Return the agent's reward, the sum of its components.

        A sum within 1e-12 of zero is returned as zero, so that rounding errors do not push a
        reward out of its range.
        """
        total = math.fsum(self.components[agent].values())
        return 0.0 if abs(total) < ROUNDING else total


@dataclass(frozen=True, slots=True)
class Turn:
    """A joint action and its score."""

    actions: Mapping[AgentID, str]
    score: Score


TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True, slots=True)
class Attempt(Generic[TaskT]):
    """A joint action to be scored, with the task and the earlier turns of the episode."""

    task: TaskT
    turns: Sequence[Turn]
    actions: Mapping[AgentID, str]


class TaskFamily(Protocol[TaskT]):
    """A family of tasks as pure functions, wrapped by `mlrl_envs.shell.env.TextParallelEnv`.

    Optional methods, for families whose agents do not all act in every turn until the end:

    - `acting(task, turns) -> Collection[AgentID]`: agents that act next, at least one; not called
      after the end
    - `left(task, turns) -> Mapping[AgentID, str]`: agents that have left the episode, each with
      `"terminated"` or `"truncated"`; an agent that has left is in every later result, too
    - `deal(task, seed) -> Task`: the task of an episode, with what chance draws from the seed
    - `reference_at(task, turns) -> Mapping[AgentID, str] | None`: correct actions of the agents
      that act next; by default `reference(task)`

    The actions of an attempt and of a turn are those of the agents that acted. A score may leave
    out agents without a reward, and may pay agents that wait. `competitive = True` declares that no
    joint action is best for all agents, so that reference actions need not solve the task.

    Attributes:
        agents: Names of the agents, in a fixed order.
        tasks: Every task of the chosen split.
        max_turns: Maximum number of joint actions in an episode, at least 1.
        reward_range: Lowest and highest reward of one turn, the same for every agent.
    """

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """See the attributes above."""
        ...

    @property
    def tasks(self) -> Sequence[TaskT]:
        """See the attributes above."""
        ...

    @property
    def max_turns(self) -> int:
        """See the attributes above."""
        ...

    @property
    def reward_range(self) -> tuple[float, float]:
        """See the attributes above."""
        ...

    def observe(self, task: TaskT, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the observation of `agent` before the next turn."""
        ...

    def score(self, attempts: Sequence[Attempt[TaskT]], sandbox: ProgramRunner) -> list[Score]:
        """Score many attempts as one batch, in order.

        Raises:
            InfraError: If the sandbox fails; no action of an agent raises an error.
        """
        ...

    def reference(self, task: TaskT) -> Mapping[AgentID, str] | None:
        """Return a correct joint action, or None if the data has none."""
        ...


class TextEnv(Protocol):
    """A PettingZoo parallel environment of texts; `mlrl_envs.check_env` checks its contract.

    Attributes:
        metadata: Contains at least `"name"`, the id.
        possible_agents: Every agent, in a fixed order.
        agents: The agents still in the episode; empty outside one. All of them act next, except
            those with a false `infos[agent]["acts"]`.
        state_space: Space of `state()`.
        num_tasks: Number of tasks in this split.
        max_turns: Maximum number of joint actions in an episode.
        reward_range: Lowest and highest reward of one turn.
    """

    metadata: dict[str, Any]
    possible_agents: list[AgentID]
    state_space: "UnicodeText"

    @property
    def agents(self) -> list[AgentID]:
        """See the attributes above."""

    @property
    def num_tasks(self) -> int:
        """See the attributes above."""

    @property
    def max_turns(self) -> int:
        """See the attributes above."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """See the attributes above."""

    def observation_space(self, agent: AgentID) -> "UnicodeText":
        """Return the space of the observations of `agent`."""

    def action_space(self, agent: AgentID) -> "UnicodeText":
        """Return the space of the actions of `agent`."""

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[AgentID, str], dict[AgentID, Info]]:
        """Start an episode and return observations and infos."""

    def step(self, actions: Mapping[AgentID, str]) -> StepResult:
        """Play the actions of the agents that act; return observations, rewards, ends, infos."""

    def reference_actions(self) -> dict[AgentID, str] | None:
        """Return correct actions of the agents that act, or None."""

    def state(self) -> str:
        """Return the joint observation."""

    def close(self) -> None:
        """Release resources; may be called twice."""


@runtime_checkable
class BatchedEnv(Protocol):
    """The part of an environment that is scored together with others, see `mlrl_envs.step_many`.

    `attempt` and `score_batch` leave the environments as they are; `advance` cannot fail. An
    environment may also have `reset_batch(envs, seeds, options)`, which returns the result of each
    reset or its error.

    Attributes:
        batch_key: Environments with equal keys are scored together.
    """

    @property
    def batch_key(self) -> object:
        """See the attributes above."""

    def attempt(self, actions: Mapping[AgentID, str]) -> Any:  # noqa: ANN401  passed to score_batch
        """Check a joint action and return what `score_batch` needs of it."""

    def score_batch(
        self, envs: Sequence[Any], attempts: Sequence[Any], errors: str = "raise"
    ) -> list[Any]:
        """Score the attempts of environments with the same key.

        Args:
            envs: The environments, one for each attempt.
            attempts: What their methods `attempt` returned.
            errors: With `"return"`, the error of an attempt may be returned in place of its score.
        """

    def advance(self, scored: Any) -> StepResult:  # noqa: ANN401  an element of score_batch's result
        """Play a scored attempt and return the result of `step`."""


def is_batched(env: object) -> TypeGuard[BatchedEnv]:
    """Return whether an environment is a `BatchedEnv`, 20 times as fast as `isinstance`."""
    return all(hasattr(env, name) for name in ("batch_key", "attempt", "score_batch", "advance"))

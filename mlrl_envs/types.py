"""What the parts of an environment hand to one another: frozen, picklable, free of behaviour.

An environment holds its state as a task and the turns played so far, nothing else. That is what
makes it forkable, picklable, batchable and rescorable.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Outcome, Program, Reply, Script
    from mlrl_envs.spaces import UnicodeText

__all__ = [
    "AgentID",
    "Attempt",
    "Info",
    "Json",
    "ProgramRunner",
    "Score",
    "StepResult",
    "Task",
    "TaskFamily",
    "TextEnv",
    "Turn",
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


ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Task:
    """One row of a data set. `mlrl_envs.tasks` adds what the rows of each family hold.

    Attributes:
        task_id: Unique and stable within a data set, e.g. `"HumanEval/3"`.
    """

    task_id: str


@dataclass(frozen=True, slots=True)
class Score:
    """The verdict on one joint action.

    Attributes:
        components: For each agent, named parts of its reward; their sum **is** the reward.
        solved: Whether the task is done: every test passes, the answer is right.
        diagnostics: For each agent, public facts that feedback may show. Deterministic, JSON
            values only; never a hidden test, an answer, a time or an address.
    """

    components: Mapping[AgentID, Mapping[str, float]]
    solved: bool
    diagnostics: Mapping[AgentID, Mapping[str, Json]] = field(default_factory=dict)

    def reward(self, agent: AgentID) -> float:
        """Return the agent's reward, the sum of its components.

        A sum within 1e-12 of zero is zero: rounding pushes no reward out of its range.
        """
        total = math.fsum(self.components[agent].values())
        return 0.0 if abs(total) < ROUNDING else total


@dataclass(frozen=True, slots=True)
class Turn:
    """One joint action that was played, and its score."""

    actions: Mapping[AgentID, str]
    score: Score


TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True, slots=True)
class Attempt(Generic[TaskT]):
    """One joint action to be scored, with the turns that led to it."""

    task: TaskT
    turns: Sequence[Turn]
    actions: Mapping[AgentID, str]


class ProgramRunner(Protocol):
    """What a family needs of a sandbox: programs in, verdicts out, order kept."""

    def run_many(self, programs: "Sequence[Program]") -> "list[Outcome]":
        """Run untrusted programs, all of them.

        Raises:
            InfraError: If the machinery fails; a bad program never raises.
        """
        ...

    def play_many(self, scripts: "Sequence[Script]") -> "list[list[Reply]]":
        """Play scripts of sessions, one reply a call.

        Raises:
            InfraError: If the machinery fails; nothing that a cell does raises.
        """
        ...


class TaskFamily(Protocol[TaskT]):
    """A family of tasks as pure functions, wrapped by `mlrl_envs.shell.env.TextParallelEnv`.

    Attributes:
        agents: Roles, in a fixed order.
        tasks: Every task of the chosen split.
        max_turns: Joint actions an episode may have, at least 1.
        reward_range: Lowest and highest reward of one turn, for every agent.
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
        """Return what `agent` reads before the next turn."""
        ...

    def score(self, attempts: Sequence[Attempt[TaskT]], sandbox: ProgramRunner) -> list[Score]:
        """Score many attempts as one batch, in order.

        Raises:
            InfraError: If the sandbox fails; model output never raises.
        """
        ...

    def reference(self, task: TaskT) -> Mapping[AgentID, str] | None:
        """Return a joint action known to be right, or None where the data has none."""
        ...


class TextEnv(Protocol):
    """A PettingZoo parallel environment of texts, as `mlrl_envs.check_env` checks it.

    Attributes:
        metadata: Holds at least `"name"`, the id.
        possible_agents: Every role, in a fixed order.
        agents: Who acts next; empty outside an episode.
        state_space: Space of `state()`.
        num_tasks: Rows in this split.
        max_turns: Joint actions an episode may have.
        reward_range: Lowest and highest reward of one turn.
    """

    metadata: dict[str, Any]
    possible_agents: list[AgentID]
    state_space: "UnicodeText"

    @property
    def agents(self) -> list[AgentID]:
        """See the attributes above."""
        ...

    @property
    def num_tasks(self) -> int:
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

    def observation_space(self, agent: AgentID) -> "UnicodeText":
        """Return the space of what `agent` may read."""
        ...

    def action_space(self, agent: AgentID) -> "UnicodeText":
        """Return the space of what `agent` may write."""
        ...

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[AgentID, str], dict[AgentID, Info]]:
        """Begin an episode; return what each agent reads, and its info."""
        ...

    def step(self, actions: Mapping[AgentID, str]) -> StepResult:
        """Play one joint action; return the five dicts."""
        ...

    def reference_actions(self) -> dict[AgentID, str] | None:
        """Return a right joint action for the current task, or None."""
        ...

    def state(self) -> str:
        """Return the joint observation."""
        ...

    def close(self) -> None:
        """Release what the environment holds; safe to call twice."""
        ...

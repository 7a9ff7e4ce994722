"""Toys as PettingZoo environments, built like the environments of `mlrl_envs`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_envs import TextParallelEnv
from mlrl_envs.types import Attempt, ProgramRunner, Score, Task, Turn
from mlrl_learners.testing.toys import TEXTS, WAITING, Picks, Toy, pick_of
from mlrl_learners.types import AgentID

__all__ = ["ToyEnv", "ToyFamily"]


@dataclass(frozen=True, slots=True)
class ToyFamily:
    """A toy as a task family.

    Attributes:
        toy: The toy.
        agents: The agents.
        tasks: One task.
    """

    toy: Toy
    agents: tuple[AgentID, ...]
    tasks: tuple[Task, ...] = (Task("toy"),)

    @property
    def max_turns(self) -> int:
        """Largest number of turns."""
        return self.toy.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """Bounds of the reward of one turn, not tight."""
        return -float(len(self.agents)), float(len(self.agents))

    def observe(self, task: Task, turns: Sequence[Turn], agent: AgentID) -> str:  # noqa: ARG002 - one task
        """Return what an agent reads if it acts."""
        history = self._history(turns)
        is_over = len(turns) == self.max_turns or (turns and turns[-1].score.solved)
        acts = is_over or agent in self._names(self.toy.acting(history, len(self.agents)))
        return self.toy.observe(history) if acts else WAITING

    def acting(self, task: Task, turns: Sequence[Turn]) -> list[AgentID]:
        """Return the agents that act next."""
        gone = self.left(task, turns)
        numbers = self.toy.acting(self._history(turns), len(self.agents))
        return [agent for agent in self._names(numbers) if agent not in gone]

    def left(self, task: Task, turns: Sequence[Turn]) -> dict[AgentID, str]:  # noqa: ARG002 - one task
        """Return the agents that have left."""
        history = self._history(turns)
        gone = [self.toy.play(history[:end]).left for end in range(1, len(history) + 1)]
        return {agent: "terminated" for numbers in gone for agent in self._names(numbers)}

    def score(self, attempts: Sequence[Attempt[Task]], sandbox: ProgramRunner) -> list[Score]:  # noqa: ARG002 - no programs
        """Play joint actions."""
        return [self._score(attempt) for attempt in attempts]

    def reference(self, task: Task) -> None:
        """Return None; see `reference_at`."""

    def reference_at(self, task: Task, turns: Sequence[Turn]) -> dict[AgentID, str] | None:
        """Return the picks of an optimal policy, if they do not depend on the turn."""
        if self.toy.best_pick is None:
            return None
        return dict.fromkeys(self.acting(task, turns), TEXTS[self.toy.best_pick])

    def _score(self, attempt: Attempt[Task]) -> Score:
        history = (*self._history(attempt.turns), self._picks(attempt.actions))
        outcome = self.toy.play(history)
        rewards = {agent: outcome.reward_of(number) for number, agent in enumerate(self.agents)}
        return Score({a: {"reward": r} for a, r in rewards.items()}, outcome.terminated)

    def _history(self, turns: Sequence[Turn]) -> tuple[Picks, ...]:
        return tuple(self._picks(turn.actions) for turn in turns)

    def _picks(self, actions: Mapping[AgentID, str]) -> Picks:
        return tuple(pick_of(actions[a]) if a in actions else None for a in self.agents)

    def _names(self, numbers: Sequence[int]) -> list[AgentID]:
        return [self.agents[number] for number in numbers]


class ToyEnv(TextParallelEnv):
    """A toy as a PettingZoo parallel environment.

    Args:
        toy: The toy.
        agents: The agents.
    """

    def __init__(self, toy: Toy, agents: Sequence[AgentID]) -> None:
        super().__init__(ToyFamily(toy, tuple(agents)), env_id=f"toy/{toy.name}-v0")

"""Base of task families that wrap another family."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.types import AgentID, Task, TaskFamily, Turn

__all__ = ["WrappedFamily"]


@dataclass(frozen=True)
class WrappedFamily:
    """A family with the agents, tasks, limits and prompts of another; subclasses change some.

    Attributes:
        family: The wrapped family.
    """

    family: TaskFamily[Any]

    @property
    def agents(self) -> tuple[AgentID, ...]:
        """The agents of the wrapped family."""
        return self.family.agents

    @property
    def tasks(self) -> Sequence[Any]:
        """The tasks of the wrapped family."""
        return self.family.tasks

    @property
    def max_turns(self) -> int:
        """The turn limit of the wrapped family."""
        return self.family.max_turns

    @property
    def reward_range(self) -> tuple[float, float]:
        """The reward range of the wrapped family."""
        return self.family.reward_range

    def observe(self, task: Task, turns: Sequence[Turn], agent: AgentID) -> str:
        """Return the observation of the wrapped family."""
        return self.family.observe(task, turns, agent)

    def reference(self, task: Task) -> Mapping[AgentID, str] | None:
        """Return the correct joint action of the wrapped family."""
        return self.family.reference(task)

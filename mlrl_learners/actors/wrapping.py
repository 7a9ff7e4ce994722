"""What actors share that wrap another one: one answer at a time, seeds and views passed on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mlrl_learners.types import Actor, AgentID, Completion, Spectator

__all__ = ["WrappingActor"]

Observations = Mapping[AgentID, str]


class WrappingActor(ABC):
    """Plays through a base actor, whose prompts it may add to.

    Args:
        base: Any actor that answers observations of some of the agents.
    """

    def __init__(self, base: Actor) -> None:
        self.base = base

    @abstractmethod
    def play(
        self, observations: Sequence[Observations], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return one answer an agent to each of many joint observations."""

    def act(
        self,
        observations: Sequence[Observations],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer many joint observations, each sample on its own."""
        repeated = [each for each in observations for _ in range(num_samples)]
        played = self.play(repeated, explore=explore)
        groups = [played[i : i + num_samples] for i in range(0, len(played), num_samples)]
        return [
            {agent: [answers[agent] for answers in group] for agent in each}
            for each, group in zip(observations, groups, strict=True)
        ]

    def ask(
        self, observations: Sequence[Observations], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return one answer of the base actor to each observation."""
        answers = self.base.act(observations, num_samples=1, explore=explore)
        return [{agent: group[0] for agent, group in answer.items()} for answer in answers]

    def watch(self, envs: Sequence[Any]) -> None:
        """Show the environments to a base that wants to see them."""
        if isinstance(self.base, Spectator):
            self.base.watch(envs)

    def sampling_seed(self, seed: int) -> AbstractContextManager[None]:
        """Let a base that can sample from `seed` inside the block."""
        context: AbstractContextManager[None] = nullcontext()
        if hasattr(self.base, "sampling_seed"):
            context = self.base.sampling_seed(seed)
        return context

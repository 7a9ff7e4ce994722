"""Base class of actors that wrap another actor."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mlrl_learners.types import Actor, AgentID, Completion, Spectator

__all__ = ["WrappingActor"]

Observations = Mapping[AgentID, str]


class WrappingActor(ABC):
    """Actor that answers through a base actor, with changed prompts.

    Args:
        base: Actor that can answer observations of any subset of the agents.
    """

    def __init__(self, base: Actor) -> None:
        self.base = base

    @abstractmethod
    def play(
        self, observations: Sequence[Observations], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return one answer per agent to each of many joint observations."""

    def act(
        self,
        observations: Sequence[Observations],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Answer many joint observations, with an independent call of `play` per sample."""
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
        """Pass the environments to a base that is a `Spectator`."""
        if isinstance(self.base, Spectator):
            self.base.watch(envs)

    def sampling_seed(self, seed: int) -> AbstractContextManager[None]:
        """Let the base sample from `seed` inside the block, if it supports that."""
        context: AbstractContextManager[None] = nullcontext()
        if hasattr(self.base, "sampling_seed"):
            context = self.base.sampling_seed(seed)
        return context

"""Actor in which one agent works alone and its teammates give empty answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.actors.wrapping import WrappingActor
from mlrl_learners.errors import unknown_name
from mlrl_learners.types import Actor, AgentID, Completion

__all__ = ["SingleActor"]

MAIN = "main"
_ALONE = (
    "You are alone this time: your teammates write nothing. Do without what they were to write, "
    "or write it yourself."
)


class SingleActor(WrappingActor):
    """Actor in which one agent works alone, as a baseline for teams.

    Works in every environment; in turns in which the agent waits nobody is asked. An environment's
    own variant for one agent (`num_aux=0` for code) is the fairer comparison, because its prompt is
    written for one agent.

    Args:
        base: Actor that plays the agent.
        agent: The agent; None for `main` if there is one, otherwise for the last agent.
    """

    def __init__(self, base: Actor, agent: AgentID | None = None) -> None:
        super().__init__(base)
        self.agent = agent
        self._agents: tuple[AgentID, ...] = ()

    def watch(self, envs: Sequence[Any]) -> None:
        """Read the names of all agents, and pass the environments to the base."""
        super().watch(envs)
        for env in envs[:1]:  # all are of one kind
            self._agents = tuple(getattr(env, "possible_agents", ()))

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return one agent's answers, and empty ones without token usage for the others."""
        asked = [self._asked(each) for each in observations]
        answers = self.ask(asked, explore=explore)
        return [
            {agent: answer.get(agent, Completion("")) for agent in each}
            for each, answer in zip(observations, answers, strict=True)
        ]

    def _asked(self, observation: Mapping[AgentID, str]) -> dict[AgentID, str]:
        """Return the prompt of the agent that works; empty if it waits."""
        agents = self._agents or tuple(observation)
        worker = self.agent or (MAIN if MAIN in agents else agents[-1])
        if worker not in agents:
            raise unknown_name("agent", worker, agents)
        if worker not in observation:
            return {}
        text = observation[worker]
        return {worker: f"{text}\n\n{_ALONE}" if len(agents) > 1 else text}

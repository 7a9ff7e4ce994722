"""Actor in which one agent works alone and its teammates give empty answers."""

from collections.abc import Mapping, Sequence

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

    Works in every environment. An environment's own variant for one agent (`num_aux=0` for code) is
    the fairer comparison, because its prompt is written for one agent.

    Args:
        base: Actor that plays the agent.
        agent: The agent; None for `main` if there is one, otherwise for the last agent.
    """

    def __init__(self, base: Actor, agent: AgentID | None = None) -> None:
        super().__init__(base)
        self.agent = agent

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Return one agent's answers, and empty ones without token usage for the others."""
        asked = [
            {agent: f"{each[agent]}\n\n{_ALONE}" if len(each) > 1 else each[agent]}
            for each, agent in ((each, self._worker(each)) for each in observations)
        ]
        answers = self.ask(asked, explore=explore)
        return [
            {agent: answer.get(agent, Completion("")) for agent in each}
            for each, answer in zip(observations, answers, strict=True)
        ]

    def _worker(self, observation: Mapping[AgentID, str]) -> AgentID:
        if self.agent is None:
            return MAIN if MAIN in observation else list(observation)[-1]
        if self.agent not in observation:
            raise unknown_name("agent", self.agent, observation)
        return self.agent

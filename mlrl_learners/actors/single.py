"""One agent does everything, its teammates write nothing."""

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
    """Lets one agent work alone: what a team must beat.

    An environment with a variant for one agent (`num_aux=0` for code) says so in its own prompt
    and is the fairer comparison; this works everywhere.

    Args:
        base: Plays the one agent.
        agent: Who that is; None for `main` where there is one, else the last agent.
    """

    def __init__(self, base: Actor, agent: AgentID | None = None) -> None:
        super().__init__(base)
        self.agent = agent

    def play(
        self, observations: Sequence[Mapping[AgentID, str]], *, explore: bool
    ) -> list[dict[AgentID, Completion]]:
        """Ask for one agent's answer; the others' are empty and cost nothing."""
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

"""Text environment of a game: a `TextParallelEnv` with its legal actions and scripts."""

from typing import Any

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.types import AgentID

__all__ = ["GameEnv"]


class GameEnv(TextParallelEnv):
    """A text environment of a game, with its legal actions and scripted players."""

    family: Any  # a `GameFamily`

    @property
    def scripts(self) -> tuple[str, ...]:
        """Names of the scripted players, from random to the best."""
        return tuple(self.family.game.scripts)

    def legal_actions(self, agent: AgentID) -> tuple[str, ...]:
        """Return the legal actions of `agent`, as texts for `step`; () if it does not act.

        Raises:
            UnknownNameError: If the game has no such agent.
        """
        if agent not in self.possible_agents:
            raise unknown_name("agent", agent, self.possible_agents)
        return tuple(self.family.legal_actions(self._current_task(), self._turns, agent))

    def figures(self) -> dict[str, float]:
        """Return the measures of a game that is over, such as welfare; see the game's page."""
        return dict(self.family.figures(self._current_task(), self._turns))

    def scripted_action(self, agent: AgentID, script: str, seed: int = 0) -> str:
        """Return the action of a scripted player for an agent that acts.

        Args:
            agent: The agent.
            script: Name of the script.
            seed: Seed of random scripts.

        Raises:
            InvalidArgumentError: If the agent waits, or has left the game.
            UnknownNameError: If the game has no such script.
        """
        task, turns = self._current_task(), self._turns
        acting = self.acting
        if agent not in acting:
            names = ", ".join(acting) or "nobody, the game is over"
            raise InvalidArgumentError(f"{agent!r} does not act in this turn, but {names}")
        return str(self.family.scripted_action(task, turns, agent, script=script, seed=seed))

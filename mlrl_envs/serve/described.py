"""Base class of remote environments: agents, spaces, tasks and limits from the server."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pettingzoo import ParallelEnv

from mlrl_envs.errors import unknown_name
from mlrl_envs.spaces import UnicodeText
from mlrl_envs.types import AgentID

__all__ = ["DescribedEnv"]


class DescribedEnv(ParallelEnv[AgentID, str, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """The part of a remote environment that episodes do not change.

    Args:
        told: The description by a server, see `Places`.
    """

    is_remote = True  # the tasks, and the rules and scripts of a game, are in another process

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told
        self.metadata: dict[str, Any] = copy.deepcopy(told["metadata"])
        self.possible_agents: list[AgentID] = list(told["agents"])
        self.state_space = _space(told["state_space"])
        self._spaces = {
            agent: (_space(each[2:]), _space(each[:2])) for agent, each in told["spaces"].items()
        }

    @property
    def num_tasks(self) -> int:
        """Number of tasks in this split.

        Raises:
            AttributeError: If the environment of the server lacks it.
        """
        return int(self._optional("num_tasks"))

    @property
    def max_turns(self) -> int:
        """Maximum number of joint actions in an episode.

        Raises:
            AttributeError: If the environment of the server lacks it.
        """
        return int(self._optional("max_turns"))

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest reward of one turn.

        Raises:
            AttributeError: If the environment of the server lacks it.
        """
        return cast("tuple[float, float]", tuple(self._optional("reward_range")))

    @property
    def fingerprint(self) -> dict[str, str]:
        """Hashes of data and scorer, see `mlrl_envs.fingerprint`."""
        return dict(self._told["fingerprint"])

    @property
    def option_names(self) -> list[str] | None:
        """Names of the options that the environment has; None if its function accepts any."""
        names: Sequence[str] | None = self._told.get("options")  # unknown to older servers
        return None if names is None else list(names)

    def action_space(self, agent: AgentID) -> UnicodeText:
        """Return the space of the actions of `agent`."""
        return self._agent_spaces(agent)[0]

    def observation_space(self, agent: AgentID) -> UnicodeText:
        """Return the space of the observations of `agent`."""
        return self._agent_spaces(agent)[1]

    def _agent_spaces(self, agent: AgentID) -> tuple[UnicodeText, UnicodeText]:
        if agent not in self._spaces:
            raise unknown_name("agent", agent, self._spaces)
        return self._spaces[agent]

    def _optional(self, name: str) -> Any:  # noqa: ANN401  JSON
        if self._told[name] is None:  # as of a local environment, so that `hasattr` is false
            raise AttributeError(f"the environment of the server has no {name!r}")
        return self._told[name]


def _space(lengths: Sequence[int]) -> UnicodeText:
    return UnicodeText(lengths[1], min_length=lengths[0])

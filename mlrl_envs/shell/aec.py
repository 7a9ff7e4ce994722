"""AEC view of a parallel environment: the agents of a turn act one after another.

`agent_selection` goes over the agents that act; an agent that waits is not selected. The joint
action is played when the last of them has acted. Agents that have left take PettingZoo's dead step.
Observations have the `dtype` that PettingZoo's `api_test` requires.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from mlrl_envs.shell.arguments import not_a_text
from mlrl_envs.shell.roster import acting_agents
from mlrl_envs.types import AgentID, StepResult, TextEnv

__all__ = ["TextObservation", "to_aec"]


class TextObservation(str):
    """A `str` with a dtype, which PettingZoo requires of observations."""

    __slots__ = ()
    dtype: ClassVar[np.dtype[Any]] = np.dtype(str)


def to_aec(env: TextEnv) -> AECEnv[AgentID, str, str]:
    """Return an AEC view of a parallel text environment; the view owns `env` from then on."""
    return _OrderedView(_AecView(env))


class _OrderedView(OrderEnforcingWrapper):  # type: ignore[misc]  # PettingZoo is untyped
    _has_reset: bool
    _has_updated: bool

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        before = self._has_reset, self._has_updated
        try:
            super().reset(seed=seed, options=options)
        except Exception:
            self._has_reset, self._has_updated = before  # a refused reset begins nothing
            raise

    def __str__(self) -> str:
        return str(self.env)


class _AecView(parallel_to_aec_wrapper):  # type: ignore[misc]  # PettingZoo is untyped
    agent_selection: AgentID
    rewards: dict[AgentID, float]
    _actions: dict[AgentID, str]  # of this turn
    _queue: list[AgentID]  # those that act after `agent_selection` in this turn

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        self._observations, self.infos = self.env.reset(seed=seed, options=options)
        self.agents = list(self.env.agents)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._begin_turn()

    def observe(self, agent: AgentID) -> TextObservation:
        return TextObservation(self._observations[agent])

    def step(self, action: str | None) -> None:
        agent: AgentID = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, str):
            raise not_a_text(agent, action)
        # A new dict each time, because `env` may keep the one that it was given.
        actions = {**self._actions, agent: action}
        result = None if self._queue else self.env.step(actions)  # first, because it may fail
        self._actions = actions
        self._cumulative_rewards[agent] = 0
        self._clear_rewards()
        if result is None:
            self.agent_selection = self._queue.pop(0)
        else:
            self._end_turn(result)

    def _end_turn(self, result: StepResult) -> None:
        self._observations, rewards, terminations, truncations, infos = result
        self.rewards, self.infos = dict(rewards), dict(infos)
        self.terminations, self.truncations = dict(terminations), dict(truncations)
        self._accumulate_rewards()
        self._begin_turn()
        self._deads_step_first()

    def _begin_turn(self) -> None:
        self._actions = {}
        self._queue = list(acting_agents(self.env.agents, self.infos))
        if self._queue:
            self.agent_selection = self._queue.pop(0)

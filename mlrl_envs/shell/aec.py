"""AEC view of a parallel environment: agents act one after another and are scored together.

It is PettingZoo's conversion with two changes: observations have the `dtype` that `api_test`
requires, and each joint action is a new dict.
"""

from typing import Any, ClassVar

import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from mlrl_envs.types import AgentID, TextEnv

__all__ = ["TextObservation", "to_aec"]


class TextObservation(str):
    """A `str` with a dtype, which PettingZoo requires of observations."""

    __slots__ = ()
    dtype: ClassVar[np.dtype[Any]] = np.dtype(str)


def to_aec(env: TextEnv) -> AECEnv[AgentID, str, str]:
    """Return an AEC view of a parallel text environment; the view owns `env` from then on."""
    return OrderEnforcingWrapper(_AecView(env))


class _AecView(parallel_to_aec_wrapper):  # type: ignore[misc]  # PettingZoo is untyped
    def observe(self, agent: AgentID) -> TextObservation:
        return TextObservation(super().observe(agent))

    def step(self, action: str | None) -> None:
        # A new dict for each turn, because `env` may keep the one that it was given.
        self._actions: dict[AgentID, str | None] = dict(self._actions)
        super().step(action)

"""The AEC view: agents of a parallel environment act one after another, and are scored together.

PettingZoo's own conversion does nearly all of it. Added here: observations carry the `dtype` that
its `api_test` asks of every observation, and each joint action is a dict of its own.
"""

from typing import Any, ClassVar

import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from mlrl_envs.types import AgentID, TextEnv

__all__ = ["TextObservation", "to_aec"]


class TextObservation(str):
    """A `str` that names its dtype, as PettingZoo asks of observations."""

    __slots__ = ()
    dtype: ClassVar[np.dtype[Any]] = np.dtype(str)


def to_aec(env: TextEnv) -> AECEnv[AgentID, str, str]:
    """Return an AEC view of a parallel text environment; it owns `env` from now on."""
    return OrderEnforcingWrapper(_AecView(env))


class _AecView(parallel_to_aec_wrapper):  # type: ignore[misc]  # PettingZoo is untyped
    def observe(self, agent: AgentID) -> TextObservation:
        return TextObservation(super().observe(agent))

    def step(self, action: str | None) -> None:
        self._actions: dict[AgentID, str | None] = dict(self._actions)  # not one for every turn
        super().step(action)

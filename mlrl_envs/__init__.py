"""Multi-agent text environments: cooperative, with simultaneous turns, `str` in and `str` out.

    env = mlrl_envs.make("mlrl/humaneval-v0", max_turns=2)
    observations, infos = env.reset(seed=7)
    observations, rewards, terminations, truncations, infos = env.step(actions)

Importing this package loads no model, no data set and no sandbox; `mlrl_envs.sandbox` is imported
at its first use.
"""

import importlib
from types import ModuleType

from mlrl_envs.registration import make, make_vec, register, registry
from mlrl_envs.shell.aec import to_aec
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.fingerprint import fingerprint
from mlrl_envs.shell.stepping import step_many
from mlrl_envs.shell.vector import VectorEnv
from mlrl_envs.testing import check_env
from mlrl_envs.types import TextEnv

__all__ = [
    "TextEnv",
    "TextParallelEnv",
    "VectorEnv",
    "check_env",
    "fingerprint",
    "make",
    "make_vec",
    "register",
    "registry",
    "sandbox",
    "step_many",
    "to_aec",
]


def __getattr__(name: str) -> ModuleType:
    if name == "sandbox":
        return importlib.import_module("mlrl_envs.sandbox")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Multi-agent text environments, `str` in and `str` out: teams and games, at once or in turns.

    env = mlrl_envs.make("mlrl/humaneval-v1", max_turns=2)
    observations, infos = env.reset(seed=7)
    observations, rewards, terminations, truncations, infos = env.step(actions)

Importing this package loads no model, no data set and no sandbox; `mlrl_envs.sandbox`,
`mlrl_envs.audit` and `mlrl_envs.audit_game` are imported at their first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mlrl_envs.naming import tools_of
from mlrl_envs.registration import make, make_vec, register, registry
from mlrl_envs.shell.aec import to_aec
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.fingerprint import fingerprint
from mlrl_envs.shell.stepping import reset_many, step_many
from mlrl_envs.shell.vector import VectorEnv
from mlrl_envs.testing import check_env
from mlrl_envs.types import TextEnv
from mlrl_envs.workflows import workflow

if TYPE_CHECKING:
    from mlrl_envs.auditing.games import audit_game
    from mlrl_envs.auditing.run import audit
    from mlrl_envs.auditing.seats import is_game

__all__ = [
    "TextEnv",
    "TextParallelEnv",
    "VectorEnv",
    "audit",
    "audit_game",
    "check_env",
    "fingerprint",
    "is_game",
    "make",
    "make_vec",
    "register",
    "registry",
    "reset_many",
    "sandbox",
    "step_many",
    "to_aec",
    "tools_of",
    "workflow",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  a module or a function
    if name == "sandbox":
        return importlib.import_module("mlrl_envs.sandbox")
    if name == "audit":
        return importlib.import_module("mlrl_envs.auditing.run").audit
    if name == "audit_game":
        return importlib.import_module("mlrl_envs.auditing.games").audit_game
    if name == "is_game":
        return importlib.import_module("mlrl_envs.auditing.seats").is_game
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

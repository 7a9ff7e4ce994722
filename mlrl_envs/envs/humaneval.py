"""HumanEval for two programmers: a helper `aux` and the function itself, `main`.

Version history:
    v0: first version.
"""

from typing import Any

from mlrl_envs.base import TextParallelEnv, build_env
from mlrl_envs.datasets.humaneval import load_humaneval
from mlrl_envs.envs.code import CodeConfig, CodeFamily

__all__ = ["ENV_ID", "parallel_env"]

ENV_ID = "mlrl/humaneval-v0"


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `CodeConfig`, and of the shell."""
    return build_env(ENV_ID, CodeConfig, _family, options)


def _family(config: CodeConfig) -> CodeFamily:
    return CodeFamily(config, load_humaneval(config.split, config.data_path))

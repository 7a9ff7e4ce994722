"""CoopHumanEval for two programmers: a helper `aux` and the function itself, `main`.

The problems were chosen because their work can be shared. Both agents read the problem and answer
at once, blind to each other, with one function each; the joint program is run against the data
set's tests. With `num_aux=0` main works alone.

Agents: `aux` (`aux_1`, `aux_2` ... when there are several), `main`.
Reward: grounded in (0, 1): 0.1 format + 0.7 tests + 0.2 cooperation; paper in (0, 4); attempts in
    (-0.5, 2). See `mlrl_envs.rewards.coding.functions`.
Data: CoopHumanEval, 82 rows, Apache-2.0; 16 of them from HumanEval, MIT, so that the two share
    entry points. OpenMLRL, https://huggingface.co/datasets/OpenMLRL/CoopHumanEval. Seven rows whose
    tests contradict their docstring are in the split `all` only; see
    `mlrl_envs.datasets.coophumaneval`.

Version history:
    v0: first version.
"""

from typing import Any

from mlrl_envs.datasets.coophumaneval import load_coophumaneval
from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.shell.env import TextParallelEnv, build_env

__all__ = ["ENV_ID", "parallel_env"]

ENV_ID = "mlrl/coophumaneval-v0"


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `CodeConfig`, and of the shell."""
    return build_env(ENV_ID, CodeConfig, _family, options)


def _family(config: CodeConfig) -> CodeFamily:
    return CodeFamily(config, load_coophumaneval(config.split, config.path))

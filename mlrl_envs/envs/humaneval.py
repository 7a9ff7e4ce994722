"""HumanEval for two programmers: a helper `aux` and the function itself, `main`.

Both read the problem and answer at once, blind to each other, with one function each; the joint
program is run against the data set's tests. With `num_aux=0` main works alone.

Agents: `aux` (`aux_1`, `aux_2` ... when there are several), `main`.
Reward: grounded in (0, 1): 0.1 format + 0.7 tests + 0.2 cooperation; paper in (0, 4); attempts in
    (-0.5, 2). See `mlrl_envs.rewards.coding.functions`.
Data: HumanEval, 164 rows, MIT. M. Chen et al., "Evaluating Large Language Models Trained on Code",
    arXiv:2107.03374.

Version history:
    v0: first version.
"""

from typing import Any

from mlrl_envs.datasets.humaneval import load_humaneval
from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.shell.env import TextParallelEnv, build_env

__all__ = ["ENV_ID", "parallel_env"]

ENV_ID = "mlrl/humaneval-v0"


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `CodeConfig`, and of the shell."""
    return build_env(ENV_ID, CodeConfig, _family, options)


def _family(config: CodeConfig) -> CodeFamily:
    return CodeFamily(config, load_humaneval(config.split, config.path))

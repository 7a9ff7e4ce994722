"""MBPP for two programmers: a helper `aux` and the function itself, `main`.

Both read a sentence and one example and answer at once, blind to each other, with one function
each; the joint program is run against the data set's tests. With `num_aux=0` main works alone.

Agents: `aux` (`aux_1`, `aux_2` ... when there are several), `main`.
Reward: grounded in (0, 1): 0.1 format + 0.7 tests + 0.2 cooperation; paper in (0, 4); attempts in
    (-0.5, 2). See `mlrl_envs.rewards.coding.functions`.
Data: MBPP, 974 rows (`variant="full"`) or 427 revised ones (`variant="sanitized"`), CC BY 4.0.
    J. Austin et al., "Program Synthesis with Large Language Models", arXiv:2108.07732.

Version history:
    v0: first version.
"""

from dataclasses import dataclass
from typing import Any

from mlrl_envs.config import check_choice
from mlrl_envs.datasets.mbpp import Variant, load_mbpp
from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.shell.env import TextParallelEnv, build_env

__all__ = ["ENV_ID", "MbppConfig", "parallel_env"]

ENV_ID = "mlrl/mbpp-v0"


@dataclass(frozen=True)
class MbppConfig(CodeConfig):
    """Options of MBPP.

    Attributes:
        variant: `"full"`, 974 rows, or `"sanitized"`, 427 rows revised by hand.
    """

    variant: Variant = "full"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        check_choice("variant", self.variant, ("full", "sanitized"))


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `MbppConfig`, and of the shell."""
    return build_env(ENV_ID, MbppConfig, _family, options)


def _family(config: MbppConfig) -> CodeFamily:
    return CodeFamily(config, load_mbpp(config.split, config.path, config.variant))

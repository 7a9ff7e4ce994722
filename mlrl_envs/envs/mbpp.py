"""Functions of MBPP for two programmers: a helper and the function itself.

The problem is one sentence and one example. All agents write at the same time; their functions
form one program, which is run against the tests of the data set. For agents, observations, actions
and rewards see `mlrl_envs.envs.code`.

Data:
    MBPP, 974 rows (`variant="full"`) or 427 revised ones (`variant="sanitized"`), CC BY 4.0. J.
    Austin et al., "Program Synthesis with Large Language Models", arXiv:2108.07732. The reference
    answer of `main` is the data set's solution; see `mlrl_envs.datasets.mbpp`.

Version history:
    v1: Cooperation by contrast with trivial and foreign helpers. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/mbpp-v1", split="sample", num_aux=0)
    observations, infos = env.reset(seed=0)
    observations, rewards, terminations, *_ = env.step(env.reference_actions())
    assert abs(rewards["main"] - 1.0) < 1e-9
"""

from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_choice
from mlrl_envs.datasets.mbpp import Variant, load_mbpp
from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.tasks import CodeTask

__all__ = ["MbppConfig", "MbppFamily", "parallel_env"]


@dataclass(frozen=True)
class MbppConfig(CodeConfig):
    """Options of MBPP.

    Attributes:
        variant: `"full"` for 974 rows, `"sanitized"` for 427 manually revised rows.
    """

    variant: Variant = "full"

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        check_choice("variant", self.variant, ("full", "sanitized"))


class MbppFamily(CodeFamily[MbppConfig]):
    """Functions of MBPP."""

    env_id: ClassVar[str] = "mlrl/mbpp-v1"
    config_type: ClassVar[type[MbppConfig]] = MbppConfig

    @classmethod
    def load_tasks(cls, config: MbppConfig) -> tuple[CodeTask, ...]:
        """Return the problems of the split."""
        return load_mbpp(config.split, config.path, config.variant)


parallel_env = MbppFamily.make_env

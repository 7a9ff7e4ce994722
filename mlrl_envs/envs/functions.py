"""Functions made from a seed for two programmers: a helper and the function itself.

A function takes a list of integers, a list of words or a string through one to three steps to a
result; its docstring has the steps as numbered sentences, and two examples. All agents write at the
same time; their functions form one program, which is run against ten tests. For agents,
observations, actions and rewards see `mlrl_envs.envs.code`.

Data:
    Made from `task_seed`; no data set is needed. Train and eval share no problem. The reference
    answer of `main` is the solution that the expected values come from; see
    `mlrl_envs.datasets.functions`.

Version history:
    v0: First version.

Example:
    env = mlrl_envs.make("mlrl/functions-v0", levels=[1], topics=["numbers"])
    observations, infos = env.reset(seed=0)
    observations, rewards, terminations, *_ = env.step(env.reference_actions())
    assert all(terminations.values())  # every test passes
"""

from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.envs.made_functions import MadeFunctions
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.tasks import CodeTask

__all__ = ["FunctionsConfig", "FunctionsFamily", "parallel_env"]


@dataclass(frozen=True)
class FunctionsConfig(MadeFunctions, CodeConfig):
    """Options of functions made from a seed.

    Attributes:
        data_path: Must be None, because there is no data set.
    """

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        self.check_functions()
        if self.data_path is not None:
            raise InvalidArgumentError(
                "functions are made from task_seed and have no data_path; functions of a file are "
                "in mlrl/humaneval-v1, mlrl/coophumaneval-v1 and mlrl/mbpp-v1"
            )


class FunctionsFamily(CodeFamily[FunctionsConfig]):
    """Functions made from a seed."""

    env_id: ClassVar[str] = "mlrl/functions-v0"
    config_type: ClassVar[type[FunctionsConfig]] = FunctionsConfig

    @classmethod
    def load_tasks(cls, config: FunctionsConfig) -> tuple[CodeTask, ...]:
        """Return the functions of the split."""
        return config.make_functions(config.split)


parallel_env = FunctionsFamily.make_env

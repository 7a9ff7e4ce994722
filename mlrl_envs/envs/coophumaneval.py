"""Functions of CoopHumanEval for two programmers: a helper and the function itself.

The problems were chosen because their work can be shared; each is a signature with a docstring. All
agents write at the same time; their functions form one program, which is run against the tests of
the data set. For agents, observations, actions and rewards see `mlrl_envs.envs.code`.

Data:
    CoopHumanEval, 82 rows, Apache-2.0; 16 of them from HumanEval, MIT, so that the two share entry
    points. OpenMLRL, https://huggingface.co/datasets/OpenMLRL/CoopHumanEval. Seven rows whose tests
    contradict their docstring are only in the split `all`; see `mlrl_envs.datasets.coophumaneval`.

Version history:
    v1: Cooperation by contrast with trivial and foreign helpers. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/coophumaneval-v1", split="sample")
    observations, infos = env.reset(seed=0)
    observations, rewards, terminations, *_ = env.step(env.reference_actions())
    assert all(terminations.values())  # every test passes
"""

from typing import ClassVar

from mlrl_envs.datasets.coophumaneval import load_coophumaneval
from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.tasks import CodeTask

__all__ = ["CoopHumanEvalFamily", "parallel_env"]


class CoopHumanEvalFamily(CodeFamily[CodeConfig]):
    """Functions of CoopHumanEval."""

    env_id: ClassVar[str] = "mlrl/coophumaneval-v1"
    config_type: ClassVar[type[CodeConfig]] = CodeConfig

    @classmethod
    def load_tasks(cls, config: CodeConfig) -> tuple[CodeTask, ...]:
        """Return the problems of the split."""
        return load_coophumaneval(config.split, config.path)


parallel_env = CoopHumanEvalFamily.make_env

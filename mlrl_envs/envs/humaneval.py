"""Functions of HumanEval for two programmers: a helper and the function itself.

The problem is a signature with a docstring. All agents write at the same time; their functions
form one program, which is run against the tests of the data set. For agents, observations, actions
and rewards see `mlrl_envs.envs.code`.

Data:
    HumanEval, 164 rows, MIT. M. Chen et al., "Evaluating Large Language Models Trained on Code",
    arXiv:2107.03374. The reference answer of `main` is the data set's solution; see
    `mlrl_envs.datasets.humaneval`.

Version history:
    v1: Cooperation by contrast with trivial and foreign helpers. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/humaneval-v1", split="sample")
    observations, infos = env.reset(seed=0)
    observations, rewards, terminations, *_ = env.step(env.reference_actions())
    assert all(terminations.values())  # every test passes
"""

from typing import ClassVar

from mlrl_envs.datasets.humaneval import load_humaneval
from mlrl_envs.envs.code import CodeConfig, CodeFamily
from mlrl_envs.tasks import CodeTask

__all__ = ["HumanEvalFamily", "parallel_env"]


class HumanEvalFamily(CodeFamily[CodeConfig]):
    """Functions of HumanEval."""

    env_id: ClassVar[str] = "mlrl/humaneval-v1"
    config_type: ClassVar[type[CodeConfig]] = CodeConfig

    @classmethod
    def load_tasks(cls, config: CodeConfig) -> tuple[CodeTask, ...]:
        """Return the problems of the split."""
        return load_humaneval(config.split, config.path)


parallel_env = HumanEvalFamily.make_env

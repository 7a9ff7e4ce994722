"""Tests for third-party learners: the interface contract, and toy tasks with a known optimum.

`check_learner` needs neither torch nor an environment. With `learns=True` it also trains the
learner on the toys of `mlrl_learners.testing.toys` and checks that the returns rise.
"""

from mlrl_learners.testing.contract import ScriptedActor, check_learner
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toys import TOYS, Toy, expected_return

__all__ = ["TOYS", "ScriptedActor", "Toy", "ToyEnv", "check_learner", "expected_return"]

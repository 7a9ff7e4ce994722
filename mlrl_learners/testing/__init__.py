"""Tests for other people's learners: the contract, and toy tasks with a known optimum.

`check_learner` needs neither torch nor an environment. With `learns=True` it also plays the toys
of `mlrl_learners.testing.toys` and checks that the learner raises the return of each.
"""

from mlrl_learners.testing.contract import ScriptedActor, check_learner
from mlrl_learners.testing.toys import TOYS, Toy, ToyEnv, expected_return

__all__ = ["TOYS", "ScriptedActor", "Toy", "ToyEnv", "check_learner", "expected_return"]

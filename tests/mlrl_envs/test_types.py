import copy
import pickle

import pytest

from mlrl_envs.tasks import StoryTask
from mlrl_envs.types import Attempt, Score, Turn


def test_reward_is_the_exact_sum_of_components():
    score = Score({"a": {"x": 0.1, "y": 0.2, "z": 0.7}, "b": {}}, solved=False)
    assert score.reward("a") == 1.0
    assert score.reward("b") == 0.0


def test_rounding_never_leaves_zero():
    score = Score({"a": {"x": 0.1, "y": 0.2, "z": -0.30000000000000004}}, solved=False)
    assert score.reward("a") == 0.0


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_values_are_copied_whole(clone):
    score = Score({"a": {"x": 0.5}}, solved=True, diagnostics={"a": {"checks": []}})
    attempt = Attempt(StoryTask("t", "Write:"), (Turn({"a": "x"}, score),), {"a": "y"})
    assert clone(attempt) == attempt

"""Metrics of groups: how long answers are, and whether the answers compared earned the same."""

import pytest

from mlrl_learners.algorithms.update_metrics import group_metrics
from mlrl_learners.functional.returns import AnswerGroup
from mlrl_learners.types import Completion

RATE = "left/zero_variance_rate"


def group(*returns, agent="left"):
    answers = tuple(Completion("a b", token_ids=(1, 2)) for _ in returns)
    return AnswerGroup(agent, 0, answers, returns, is_flat=len(set(returns)) == 1)


@pytest.mark.parametrize(
    ("returns", "keys", "rate"),
    [
        ([(1.0, 1.0), (0.0, 1.0)], None, 0.5),
        ([(1.0,), (1.0,), (0.0,), (1.0,)], "aabb", 0.5),
        ([(1.0,), (0.0,), (0.0,), (1.0,)], "abba", 1.0),
        ([(1.0, 1.0), (0.0, 0.0)], "aa", 0.0),
        ([(1.0,), (1.0,), (1.0,)], "aab", 1.0),
    ],
)
def test_answers_are_compared_where_their_keys_are_equal(returns, keys, rate):
    assert group_metrics([group(*each) for each in returns], keys)[RATE] == rate


def test_an_answer_that_is_compared_with_none_has_no_rate():
    assert RATE not in group_metrics([group(1.0), group(0.0)])
    assert group_metrics([group(1.0), group(0.0)])["left/completion_tokens"] == 2.0


def test_agents_whose_answers_are_compared_together_share_the_rate():
    metrics = group_metrics([group(1.0, 1.0), group(0.0, 0.0, agent="right")], ["task", "task"])
    assert metrics[RATE] == metrics["right/zero_variance_rate"] == 0.0

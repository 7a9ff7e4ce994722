"""Metrics of rollouts: ends of episodes count as often as sampling meets them."""

import pytest

from mlrl_learners.training.metrics import rollout_metrics
from mlrl_learners.types import Completion, JointStep, Node, Rollout


def step(number, *, solved=False, child=None, goes_on=False):
    ended = child is None and not goes_on
    return JointStep(
        {"a": number}, {"a": 0.0}, {}, {"a": {"solved": solved}}, solved, ended, child=child
    )


def node(turn, *steps):
    answers = tuple(Completion(str(number)) for number in range(len(steps)))
    return Node(turn, {"a": "x"}, {"a": answers}, steps)


def metrics(root):
    found = rollout_metrics([Rollout("env", "task", ("a",), root)])
    return found["train/solved_rate"], found["train/turns"]


def test_an_early_end_of_a_tree_counts_as_much_as_all_ends_beside_it():
    failed = [step(n, child=node(1, *(step(k) for k in range(4)))) for n in (2, 3)]
    root = node(0, step(0, solved=True), step(1, solved=True), *failed)
    assert metrics(root) == pytest.approx((0.5, 1.5))


def test_answers_that_a_chain_does_not_continue_are_no_ends():
    last = node(1, *(step(number, solved=True) for number in range(4)))
    root = node(0, step(0, child=last), *(step(number, goes_on=True) for number in (1, 2, 3)))
    assert metrics(root) == pytest.approx((1.0, 2.0))


def test_every_answer_is_an_end_where_a_rollout_stops():
    assert metrics(node(0, step(0, goes_on=True), step(1, solved=True))) == pytest.approx((0.5, 1))

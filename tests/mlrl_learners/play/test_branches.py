"""Joint actions of a node, and the ones that a rollout continues from."""

from random import Random

import pytest

from mlrl_learners.play.branches import Branch, grow, joint_actions
from mlrl_learners.play.steps import EnvStep
from mlrl_learners.types import Completion, RolloutConfig


def branch(*rewards, ended=()):
    """Return a played node of two agents; the episode goes on but after the ended joint actions."""
    node = Branch(None, 0, 0, {}, {}, ("a", "b"))
    for number, reward in enumerate(rewards):
        node.results.append(EnvStep({}, reward, {}, {}, {}, () if number in ended else ("a", "b")))
        if number not in ended:
            node.children[number] = Branch(None, 0, 1, {}, {}, ("a", "b"))
    return node


def chosen(node, opponents=(), seed=0):
    grow(node, RolloutConfig(branching="greedy"), Random(seed), opponents)
    return list(node.children)


def test_greedy_goes_on_from_the_joint_action_of_highest_team_reward():
    assert chosen(branch({"a": 0.5, "b": 0.0}, {"a": 0.0, "b": 1.0}, {"a": 0.4, "b": 0.4})) == [1]


def test_rewards_of_opponents_do_not_count():
    assert chosen(branch({"a": 1.0, "b": -1.0}, {"a": 0.0, "b": 2.0}), opponents=("b",)) == [0]


def test_an_episode_is_over_where_the_best_joint_action_ended_it():
    assert chosen(branch({"a": 1.0}, {"a": 0.0}, ended=(0,))) == []


def test_one_of_equal_joint_actions_is_drawn():
    equal = ({"a": 1.0}, {"a": 0.0}, {"a": 1.0})
    assert {chosen(branch(*equal), seed=seed)[0] for seed in range(20)} == {0, 2}


@pytest.mark.parametrize(("mode", "count"), [("aligned", 3), ("cross", 27), ("replay", 1 + 3 * 2)])
def test_joint_actions_of_three_agents_with_three_answers(mode, count):
    answers = {agent: [Completion(str(n)) for n in range(3)] for agent in "abc"}
    found = joint_actions({**answers, "opponent": [Completion("o")]}, mode, ("opponent",))
    assert len(found) == len({tuple(each.items()) for each in found}) == count
    assert {each["opponent"] for each in found} == {0}
    if mode == "replay":
        assert all(sum(each[agent] > 0 for agent in "abc") <= 1 for each in found)

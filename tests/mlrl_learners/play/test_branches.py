"""Joint actions of a node, and the ones that a rollout continues from."""

from random import Random

import pytest

from mlrl_learners.play.branches import Branch, grow, joint_actions
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.play.steps import EnvStep
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toys import TEXTS, Toy, ToyOutcome
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


class CoinFlipper:
    """Picks 1 with probability 1/4."""

    def __init__(self):
        self.draw = Random(0)

    def act(self, observations, *, num_samples=1, explore=True):
        return [
            {
                agent: [Completion(TEXTS[self.draw.random() < 0.25]) for _ in range(num_samples)]
                for agent in each
            }
            for each in observations
        ]


def climb(history):
    """Pay for every pick of 1, and go on whatever was picked, for three turns."""
    return ToyOutcome(float(history[-1][0] or 0), truncated=len(history) == 3)


@pytest.mark.parametrize(
    ("branching", "share"), [("greedy", (1 - 0.75**4) ** 2), ("chain", 0.25**2)]
)
def test_greedy_reaches_states_that_only_good_answers_lead_to(branching, share):
    """With four answers to a prompt, and as many nodes as a chain."""
    toy = Toy("climb", 3.0, 3, lambda history: f"Pick {sum(h[0] or 0 for h in history)} .", climb)
    rollouts = collect_rollouts(
        [ToyEnv(toy, ("solo",)) for _ in range(400)],
        CoinFlipper(),
        RolloutConfig(num_samples=4, branching=branching),
        task_options=[{}] * 400,
        seeds=list(range(400)),
    ).rollouts
    highest = 0
    for rollout in rollouts:
        node, depth = rollout.root, 0
        while following := [step.child for step in node.steps if step.child is not None]:
            (node,), depth = following, depth + 1
        assert depth == 2
        highest += node.observations["solo"] == "Pick 2 ."
    assert highest / 400 == pytest.approx(share, abs=0.06)

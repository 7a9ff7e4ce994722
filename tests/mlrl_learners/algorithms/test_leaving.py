"""Agents may leave an episode before the others; every method learns from what is there."""

import math

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.turn_samples import turn_samples
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.registry import BUILT_IN

METHODS = [spec.name for spec in BUILT_IN if spec.max_agents != 1]
LEAVES = {"max_turns": 3, "leaves": {"left": 1}}


def learner_of(name, **options):
    small = merge_options(
        {"model": "tiny-random", "sampling": {"max_new_tokens": 8}, "group": {"size": 2}}, options
    )
    return mlrl_learners.make(name, agents=("left", "right"), **small)


@pytest.mark.parametrize("branching", ["tree", "chain"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_from_those_who_are_there(name, branching, toy):
    options = {} if name == "sft" else {"group": {"branching": branching}}
    learner = learner_of(name, **options)
    rollouts = toy.play(learner, **LEAVES)
    assert {len(node.completions) for r in rollouts for node in r.root.walk()} == {1, 2}
    before = [p.clone() for p in learner.policies["left"].model.parameters()]
    metrics = learner.update(rollouts)
    assert all(math.isfinite(value) for value in metrics.values())
    after = learner.policies["left"].model.parameters()
    assert not all(map(torch.equal, before, after))


@pytest.mark.parametrize("name", ["ippo", "mappo"])
def test_nothing_follows_for_who_has_left_whatever_a_critic_expects(make, name, toy):
    learner = make(name, group={"size": 2}, credit={"gamma": 0.9})
    rollouts = toy.play(learner, reward=lambda *_: 1.0, **LEAVES)
    estimates = learner.critics.estimate(rollouts)
    estimators = learner.advantage_estimators(rollouts, estimates)
    samples = turn_samples(rollouts, estimates, estimators, learner.config.credit, learner.learning)
    targets = [s.value_sample.targets[0] for s in samples if s.value_sample.agent == "left"]
    assert targets == pytest.approx([1.0] * len(targets))

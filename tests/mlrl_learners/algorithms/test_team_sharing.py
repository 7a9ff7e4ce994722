"""Agents that share a policy, and agents that are frozen."""

import torch

from tests.mlrl_learners.algorithms.team_learners import equal, make, weights_of, without


def test_agents_of_one_name_share_all_they_learn(toy):
    learner = make(team={"policies": {"left": "x", "right": "x"}})
    assert learner.policy_of == {"left": "x", "right": "x", "third": "third"}
    assert list(learner.optimizers) == ["x", "third"]
    metrics = learner.update(toy.play(learner))
    assert "x/loss" in metrics
    assert [optimizer.num_steps for optimizer in learner.optimizers.values()] == [1, 1]


def test_a_frozen_agent_with_a_model_of_its_own_never_changes_and_plays_for_the_team(toy):
    learner = make(team={"frozen": ["third"]})
    frozen = [w.detach().clone() for w in learner.policies["third"].model.parameters()]
    rollouts = toy.play(learner, reward=lambda actions, agent: float(len(actions["third"])))
    metrics = learner.update(rollouts)
    assert equal(frozen, learner.policies["third"].model.parameters())
    assert metrics["third/completion_tokens"] > 0
    assert "third/loss" not in metrics
    assert float(metrics["left/grad_norm"]) > 0  # paid for what the frozen one wrote


def test_freezing_an_agent_leaves_the_weights_that_it_shares_trainable(toy):
    learner = make(team={"policies": {"left": "x", "right": "x"}, "frozen": ["right"]})
    rollouts = toy.play(learner)
    assert all(weight.requires_grad for weight in learner.policies["x"].model.parameters())
    before = weights_of(learner.policies["x"])
    learner.update(without(rollouts, "left", "third"))
    assert equal(before, weights_of(learner.policies["x"]))  # what it says is not learnt from
    learner.update(rollouts)
    assert not equal(before, weights_of(learner.policies["x"]))  # it plays with what others learn


def test_only_what_the_learning_agents_say_moves_shared_weights(toy, monkeypatch):
    free = make(seed=1, team={"policies": {"left": "x", "right": "x"}})
    rollouts = toy.play(free)
    held = make(seed=1, team={"policies": {"left": "x", "right": "x"}, "frozen": ["right"]})
    ours = toy.gradients(held, rollouts, monkeypatch)[0]
    theirs = toy.gradients(free, without(rollouts, "right"), monkeypatch)[0]
    assert torch.equal(ours, 2 * theirs)  # a mean over the answers of one agent, and of two


def test_a_frozen_agent_has_no_critic():
    assert list(make("ippo", team={"frozen": ["third"]}).critics.critics) == ["left", "right"]

"""Invariances of the gradients of policies and critics."""

import math

import pytest
import torch

from tests.mlrl_learners.algorithms.changed_rollouts import relabelled

AGENTS = ("left", "right")

NAMES = ["ippo", "mappo", "iac", "maac"]


def assert_close(found, expected, tolerance=1e-5):
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine, theirs, atol=tolerance)
    assert all(float(each.abs().max()) > 10 * tolerance for each in expected)


def test_micro_batches_leave_every_gradient_equal(make, kind, toy, monkeypatch):
    whole, split = (
        make(critic={"kind": kind}, optimizer={"epochs": 1}),
        make(critic={"kind": kind}, optimizer={"epochs": 1}, compute={"micro_batch_tokens": 1}),
    )
    rollouts = toy.play(whole, max_turns=2)
    expected = toy.gradients(whole, rollouts, monkeypatch)
    assert_close(toy.gradients(split, rollouts, monkeypatch), expected)


def test_reading_prompts_apart_leaves_every_gradient_equal(make, kind, toy, monkeypatch):
    packed, apart = (
        make(critic={"kind": kind}, optimizer={"epochs": 1}),
        make(critic={"kind": kind}, optimizer={"epochs": 1}),
    )
    for policy in apart.policies.values():
        policy.engine.override(packs_prompts=False)  # more rows, more padding
    rollouts = toy.play(packed, max_turns=2)
    expected = toy.gradients(packed, rollouts, monkeypatch)
    assert_close(toy.gradients(apart, rollouts, monkeypatch), expected)


def test_permuting_the_rollouts_leaves_every_gradient_equal(make, kind, toy, monkeypatch):
    learner = make(critic={"kind": kind}, optimizer={"epochs": 1})
    rollouts = toy.play(learner, max_turns=2)
    expected = toy.gradients(learner, rollouts, monkeypatch)
    assert_close(toy.gradients(learner, rollouts[::-1], monkeypatch), expected)


@pytest.mark.parametrize("critic", ["separate", "value_head"])
def test_relabelling_agents_that_share_weights_leaves_every_gradient_equal(
    make, critic, toy, monkeypatch
):
    learner = make(critic={"kind": critic}, team={"share_weights": True}, optimizer={"epochs": 1})
    rollouts = toy.play(learner)
    expected = toy.gradients(learner, rollouts, monkeypatch)
    assert_close(toy.gradients(learner, relabelled(rollouts), monkeypatch), expected)


def test_the_presets_differ_by_what_their_names_say(make, toy, monkeypatch):
    found = {}
    for name in NAMES:
        learner = make(name, optimizer={"epochs": 1})
        rollouts = toy.play(learner, max_turns=2)
        found[name] = torch.cat(toy.gradients(learner, rollouts, monkeypatch)[:2])
    assert len({float(gradient.norm()) for gradient in found.values()}) == len(NAMES)
    config = make("iac").config
    assert (config.advantage.gae_lambda, config.credit.gamma, config.critic.value_coef) == (
        0.0,
        0.9,
        1.2,
    )
    assert math.inf in (config.loss.clip_high, config.critic.value_clip)


@pytest.mark.parametrize(("normalize", "grows"), [(True, 1.0), (False, 10.0)])
def test_normalized_advantages_forget_the_scale_of_the_rewards(
    make, normalize, grows, toy, monkeypatch
):
    learner = make(optimizer={"epochs": 1}, advantage={"normalize": normalize})
    with torch.no_grad():
        for critic in learner.critics.critics.values():
            critic.head.weight.zero_()
    rollouts = toy.play(learner)
    plain = toy.gradients(learner, rollouts, monkeypatch)[0]
    for rollout in rollouts:
        for step in rollout.root.steps:
            step.rewards.update({agent: 10.0 * value for agent, value in step.rewards.items()})
    scaled = toy.gradients(learner, rollouts, monkeypatch)[0]
    assert torch.allclose(scaled, grows * plain, rtol=1e-3, atol=1e-4)

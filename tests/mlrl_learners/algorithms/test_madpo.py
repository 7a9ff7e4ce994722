import math

import pytest
import torch

from mlrl_learners.errors import ConfigError, NumericsError, UnknownNameError
from mlrl_learners.testing import check_learner
from mlrl_learners.types import RolloutConfig
from tests.mlrl_learners.algorithms.preference_learners import (
    AGENTS,
    disturb,
    episode,
    make,
    weights,
    write,
)


def test_at_the_start_a_reference_makes_every_margin_nothing(toy):
    metrics = make().update(toy.play(make()))
    assert metrics["preferences/margin"] == pytest.approx(0.0, abs=1e-3)
    assert metrics["preferences/loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert metrics["preferences/gap"] > 0


def test_an_update_prefers_what_was_preferred(toy):
    learner = make(optimizer={"lr": 1e-3})
    rollouts = toy.play(learner)
    learner.update(rollouts)
    after = learner.update(rollouts)
    assert after["preferences/margin"] > 0
    assert after["preferences/accuracy"] > 0.7
    assert after["preferences/loss"] < math.log(2)


def test_pairs_share_a_prompt_and_are_those_of_largest_gap(toy):
    learner = make(preferences={"num_pairs": 2})
    rollouts = toy.play(learner)
    pairs = list(learner._played(rollouts))
    assert len(pairs) == 2 * len(rollouts)
    for pair in pairs:
        for agent in AGENTS:
            assert pair.better[agent].prompt_ids == pair.worse[agent].prompt_ids
    for rollout, first in zip(rollouts, pairs[::2], strict=True):
        rewards = [step.rewards["left"] for step in rollout.root.steps]
        assert first.gap == pytest.approx(max(rewards) - min(rewards))


def test_equal_rewards_change_nothing(toy):
    learner = make()
    before = weights(learner)
    metrics = learner.update(toy.play(learner, reward=lambda *_: 0.7))
    assert metrics["preferences/pairs"] == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))


def test_several_epochs_take_as_many_steps(toy):
    learner = make(optimizer={"epochs": 3})
    learner.update(toy.play(learner))
    assert [optimizer.num_steps for optimizer in learner.optimizers.values()] == [3, 3]


def test_a_single_answer_a_prompt_is_no_choice(tmp_path):
    with pytest.raises(ConfigError, match=r"num_samples must be at least 2 .* got 1"):
        make().check_rollout(RolloutConfig(1))
    file = write(tmp_path / "e", episode("a", "b", 0.1), episode("c", "d", 0.9))
    make(preferences={"episodes": file}).check_rollout(RolloutConfig(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": {"size": 1}}, r"group\.size must be at least 2, got 1"),
        ({"preferences": {"num_pairs": 0}}, "num_pairs must be at least 1, got 0"),
        ({"loss": {"beta": 0.0}}, "beta must be above 0, got 0"),
        ({"loss": {"label_smoothing": 0.5}}, r"label_smoothing must be in \[0, 0.5\), got 0.5"),
        ({"loss": {"sft_coef": -1.0}}, r"loss\.sft_coef must be at least 0, got -1"),
        ({"loss": {"target_margin": -1.0}}, r"loss\.target_margin must be at least 0, got -1"),
        ({"preferences": {"gamma": 1.5}}, r"gamma must be in \[0, 1\], got 1.5"),
        ({"loss": {"kind": "hing"}}, "loss.kind must be sigmoid or hinge or ipo, got 'hing'"),
        ({"bta": 1.0}, "did you mean 'loss.beta'"),
    ],
)
def test_a_mistake_is_one_clear_line(options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        make(**options)


def test_dpo_is_for_one_agent():
    with pytest.raises(ConfigError, match=r"dpo trains one agent, got 2 .* take madpo"):
        make("dpo")
    assert make("dpo", agents=("solo",)).agents == ("solo",)


def test_a_loss_that_is_not_finite_is_an_error(toy):
    learner = make()
    rollouts = toy.play(learner)
    disturb(learner, float("nan"))
    with pytest.raises(NumericsError, match="loss of 'preferences' is nan"):
        learner.update(rollouts)


def test_saved_and_loaded_it_goes_on_exactly_where_it_was(tmp_path, toy):
    learner, other = make(seed=0), make(seed=99)
    learner.update(toy.play(learner))
    learner.save(tmp_path)
    other.load(tmp_path)
    for each in (learner, other):
        each.update(toy.play(each))
    assert all(torch.equal(a, b) for a, b in zip(weights(learner), weights(other), strict=True))


def test_what_a_failed_update_left_is_not_trained_on(tmp_path):
    file = write(tmp_path / "e", episode("a", "b", 1.0), episode("c", "d", 0.0))
    learner, twin = make(preferences={"episodes": file}), make(preferences={"episodes": file})
    for parameter in learner.policies["left"].model.parameters():
        parameter.grad = torch.ones_like(parameter)
    learner.update([])
    twin.update([])
    assert all(map(torch.equal, weights(learner), weights(twin)))


@pytest.mark.parametrize("name", ["madpo", "dpo"])
def test_the_contract_of_a_learner_is_kept(name):
    agents = AGENTS if name == "madpo" else ("solo",)
    check_learner(lambda: make(name, agents=agents, optimizer={"lr": 1e-3}))

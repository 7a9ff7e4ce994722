"""Invariances of the gradient of MAGRPO."""

import pytest
import torch

import mlrl_learners
from tests.mlrl_learners.algorithms.changed_rollouts import relabelled
from tests.mlrl_learners.algorithms.magrpo_learners import AGENTS, SMALL, letters, make, rollouts_of


def gradient(learner, rollouts, monkeypatch):
    """Return what `update` would have stepped along."""
    found = {}

    def record(self):
        found[id(self)] = torch.cat([p.grad.flatten().clone() for p in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None
        return 1.0

    monkeypatch.setattr("mlrl_learners.policies.optimizer.PolicyOptimizer.step", record)
    learner.update(rollouts)
    return torch.cat([found[id(opt)] for opt in learner.optimizers.values() if id(opt) in found])


@pytest.mark.parametrize("kind", ["grpo", "token_mean", "dr_grpo", "sequence", "gspo"])
def test_micro_batches_leave_the_gradient_equal(kind, monkeypatch):
    whole, split = (
        make(loss={"kind": kind}),
        make(loss={"kind": kind}, compute={"micro_batch_tokens": 1}),
    )
    rollouts = rollouts_of(whole, letters)
    expected = gradient(whole, rollouts, monkeypatch)
    assert torch.allclose(gradient(split, rollouts, monkeypatch), expected, atol=1e-6)
    assert float(expected.abs().max()) > 0


def test_permuting_the_rollouts_leaves_the_gradient_equal(monkeypatch):
    learner = make()
    rollouts = rollouts_of(learner, letters)
    expected = gradient(learner, rollouts, monkeypatch)
    assert torch.allclose(gradient(learner, rollouts[::-1], monkeypatch), expected, atol=1e-6)


def test_relabelling_agents_that_share_weights_leaves_the_gradient_equal(monkeypatch):
    learner = make(team={"share_weights": True})
    rollouts = rollouts_of(learner, letters)
    expected = gradient(learner, rollouts, monkeypatch)
    assert torch.allclose(gradient(learner, relabelled(rollouts), monkeypatch), expected, atol=1e-6)


def test_leaving_out_equal_groups_leaves_the_gradient_equal(monkeypatch):
    def reward(*completions):
        return letters(*completions) if sum(completions[0].prompt_ids) % 2 else 0.5

    filtered, full = make(), make(baseline={"skip_equal_groups": False})
    rollouts = rollouts_of(filtered, reward, tasks=("a", "b", "c", "d"))
    expected = gradient(full, rollouts, monkeypatch)
    assert torch.allclose(gradient(filtered, rollouts, monkeypatch), expected, atol=1e-6)


@pytest.mark.parametrize("baseline", ["magrpo", "mareinforce", "marloo", "maremax"])
def test_each_preset_follows_its_own_gradient(baseline, monkeypatch):
    reference = make()
    rollouts = rollouts_of(reference, letters)
    learner = mlrl_learners.make(baseline, agents=AGENTS, model="tiny-random", **SMALL)
    mine = gradient(learner, rollouts, monkeypatch)
    mean = gradient(reference, rollouts, monkeypatch)
    scale = {"magrpo": 1.0, "marloo": 4 / 3}.get(baseline)
    if scale:
        assert torch.allclose(mine, scale * mean, atol=1e-6)
    else:
        cosine = torch.nn.functional.cosine_similarity(mine, mean, dim=0)
        assert float(cosine) < 0.999


def test_a_kl_term_pulls_back_to_the_start(monkeypatch):
    pulled = make(
        penalty={"kl_coef": 10.0, "kl_estimator": "k2"}, baseline={"skip_equal_groups": False}
    )
    rollouts = rollouts_of(pulled, lambda *_: 0.0)
    assert float(gradient(pulled, rollouts, monkeypatch).abs().max()) < 1e-5  # at the start: none
    with torch.no_grad():
        for policy in pulled.policies.values():
            for parameter in policy.model.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape))
    assert float(gradient(pulled, rollouts, monkeypatch).abs().max()) > 1e-3


def test_kl_in_the_reward_is_nothing_at_the_start(monkeypatch):
    plain, penalized = make(), make(penalty={"kl_coef": 1.0, "kl_in": "reward"})
    rollouts = rollouts_of(plain, letters)
    expected = gradient(plain, rollouts, monkeypatch)
    assert torch.allclose(gradient(penalized, rollouts, monkeypatch), expected, atol=1e-4)

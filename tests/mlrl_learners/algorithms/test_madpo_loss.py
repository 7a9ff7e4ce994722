"""The loss of preferences and its gradient, against a slow reference."""

import pytest
import torch

from mlrl_learners.algorithms.pair_loss import pair_loss
from mlrl_learners.algorithms.preference_options import PreferenceLossOptions
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.functional.preferences import preference_loss
from tests.mlrl_learners.algorithms.changed_rollouts import relabelled
from tests.mlrl_learners.algorithms.preference_learners import (
    disturb,
    episode,
    make,
    slow_logprob,
    write,
)

KINDS = ["sigmoid", "hinge", "ipo"]
SIMPO = {"per_token": True, "target_margin": 0.5, "beta": 2.0, "use_reference": False}


def slow_loss(learner, pairs, temperature):
    """The loss of a team as one graph, a pair and an agent at a time."""
    loss, losses = learner.config.loss, []
    for pair in pairs:
        ratios, likelihoods = [], []
        for side in (pair.better, pair.worse):
            ratio = whole = 0.0
            for agent, row in side.items():
                name = learner.policy_of[agent]
                own = slow_logprob(learner.policies[name], row, temperature)
                whole, ratio = whole + own, ratio + own
                if loss.use_reference:
                    with torch.no_grad():
                        expected = slow_logprob(learner.references[name], row, temperature)
                    ratio = ratio - expected
            tokens = sum(len(row.token_ids) for row in side.values())
            ratios.append(ratio / tokens if loss.per_token else ratio)
            likelihoods.append(whole / tokens)
        of_margin = preference_loss(
            (ratios[0] - ratios[1])[None],
            beta=loss.beta,
            kind=loss.kind,
            label_smoothing=loss.label_smoothing,
            target_margin=loss.target_margin,
        )
        losses.append(of_margin.sum() - loss.sft_coef * likelihoods[0])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": {"use_reference": False}},
        {"loss": {"label_smoothing": 0.2}},
        {"team": {"share_weights": True}},
        {"loss": SIMPO},
        {"loss": {"sft_coef": 1.0}},
    ],
    ids=["plain", "reference-free", "smoothed", "shared", "simpo", "rpo"],
)
@pytest.mark.parametrize("from_file", [False, True], ids=["played", "file"])
def test_loss_and_gradient_equal_a_slow_reference(
    from_file, kind, options, toy, monkeypatch, tmp_path
):
    episodes = [episode("good", "fine", 0.9), episode("bad one", "", 0.1)]
    file = {"preferences": {"episodes": write(tmp_path / "e", *episodes)}}
    small = {"loss": {"kind": kind}, "group": {} if from_file else {"size": 4}}
    learner = make(**merge_options(options, small, file if from_file else {}))
    disturb(learner)
    rollouts = [] if from_file else toy.play(learner)
    pairs = learner.examples if from_file else list(learner._played(rollouts))
    loss = slow_loss(learner, pairs, 1.0 if from_file else learner.config.sampling.temperature)
    expected = []
    for policy in learner.policies.values():
        parts = torch.autograd.grad(loss, list(policy.model.parameters()), retain_graph=True)
        expected.append(torch.cat([part.flatten() for part in parts]))
    found = toy.gradients(learner, rollouts, monkeypatch)
    scale = max(float(each.abs().max()) for each in expected)
    assert all(
        torch.allclose(a, b, atol=1e-4 * scale) for a, b in zip(found, expected, strict=True)
    )
    assert scale > 1e-5
    assert learner.update(rollouts)["preferences/loss"] == pytest.approx(loss.item(), rel=1e-4)


def test_per_token_a_margin_does_not_depend_on_the_length_of_the_answers():
    logprobs, nothing = torch.tensor([[-2.0, -9.0]], dtype=torch.float64), torch.zeros(1, 2)
    lengths = torch.tensor([[1.0, 3.0]])
    losses = {
        (per_token, times): float(
            pair_loss(
                logprobs * times,
                nothing,
                lengths * times,
                PreferenceLossOptions(per_token=per_token, use_reference=False),
            )[0]
        )
        for per_token in (True, False)
        for times in (1, 2)
    }
    assert losses[True, 1] == pytest.approx(losses[True, 2])
    assert losses[False, 1] > losses[False, 2]


@pytest.mark.parametrize("change", ["micro_batches", "unpacked", "permuted"])
def test_how_rows_are_batched_leaves_the_gradient_equal(change, toy, monkeypatch):
    whole = make()
    other = make(compute={"micro_batch_tokens": 1}) if change == "micro_batches" else make()
    if change == "unpacked":
        for policy in other.policies.values():
            policy.engine.override(packs_prompts=False)
    rollouts = toy.play(whole)
    expected = toy.gradients(whole, rollouts, monkeypatch)
    shown = rollouts[::-1] if change == "permuted" else rollouts
    found = toy.gradients(other, shown, monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert all(float(each.abs().max()) > 1e-5 for each in expected)


def test_relabelling_agents_that_share_weights_leaves_the_gradient_equal(toy, monkeypatch):
    learner = make(team={"share_weights": True})
    rollouts = toy.play(learner)
    expected = toy.gradients(learner, rollouts, monkeypatch)
    found = toy.gradients(learner, relabelled(rollouts), monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))

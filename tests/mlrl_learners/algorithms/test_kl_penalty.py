"""The KL divergence from the start, in the loss or in the reward (`penalty.kl_coef`)."""

import pytest
import torch

from mlrl_learners.config.option_places import merge_options
from tests.mlrl_learners.algorithms.reward_learners import FAMILIES, make


def disturb(learner, size=0.05):
    """Move the weights away from where they started."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for policy in learner.policies.values():
            for parameter in policy.model.parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(size * noise.to(parameter.device))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_divergence_in_the_loss_equals_its_formula_over_nuclei(name, estimator, toy, monkeypatch):
    options = {"agents": ("solo",), "loss": {"kind": "sequence"}}
    plain = make(name, **options)
    pulled = make(
        name, **merge_options(options, {"penalty": {"kl_coef": 0.7, "kl_estimator": estimator}})
    )
    rollouts = toy.play(plain)
    reference = make(name, **options).policies["solo"]
    for learner in (plain, pulled):
        disturb(learner)
    answers = [c for rollout in rollouts for c in rollout.root.completions["solo"]]
    total = 0.0
    for answer in answers:  # one row at a time, by the model's own logits over each nucleus

        def slow(policy, answer=answer):
            ids = torch.tensor([[*answer.prompt_ids, *answer.token_ids]], device=policy.device)
            start = len(answer.prompt_ids)
            logits, found = policy.model(input_ids=ids).logits[0, start - 1 :], []
            ends = answer.nucleus.sizes.cumsum().tolist()
            for row, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
                inside = logits[row, answer.nucleus.token_ids[first:last].tolist()]
                found.append(logits[row, answer.token_ids[row]] - inside.logsumexp(-1))
            return torch.stack(found)

        delta = slow(reference).detach() - slow(plain.policies["solo"])
        kl = {"k1": -delta, "k2": delta**2 / 2, "k3": delta.exp() - delta - 1}[estimator]
        total = total + 0.7 * kl.sum() / len(answers)
    parameters = list(plain.policies["solo"].model.parameters())
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(total, parameters)])
    without = toy.gradients(plain, rollouts, monkeypatch)[0]
    found = toy.gradients(pulled, rollouts, monkeypatch)[0] - without
    assert torch.allclose(found, expected, atol=2e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("name", FAMILIES)
def test_divergence_in_the_reward_is_that_of_whole_distributions_answer_by_answer(name, toy):
    learner = make(name, penalty={"kl_coef": 0.5, "kl_in": "reward", "kl_estimator": "k1"})
    disturb(learner)
    rollouts = toy.play(learner, reward=lambda *_: 0.0)
    start = make(name)
    charged = learner.reward_terms.apply(rollouts)
    for rollout in charged:
        for agent, group in rollout.root.completions.items():
            for step in rollout.root.steps:
                answer = group[step.samples[agent]]
                with torch.no_grad():
                    expected, _ = start.policies[agent].logprobs([_row(answer)], temperature=1.0)
                played = sum(answer.logprobs) + float(answer.nucleus.log_masses.sum())
                kl = played - float(expected.sum())
                assert step.rewards[agent] == pytest.approx(-0.5 * kl, abs=1e-3)


def _row(answer):
    from mlrl_learners.engine import TokenRow

    return TokenRow(answer.prompt_ids, answer.token_ids)


@pytest.mark.parametrize(("where", "estimator"), [("loss", "k3"), ("reward", "k1")])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_divergence_term_pulls_a_policy_back_to_its_start(name, where, estimator, toy):
    options = {"agents": ("solo",), "group": {"size": 24}}
    kl = {"penalty": {"kl_coef": 1.0, "kl_in": where, "kl_estimator": estimator}}
    start = make(name, **options).policies["solo"]
    learner = make(name, **merge_options(kl, options, {"optimizer": {"lr": 3e-3}}))
    disturb(learner, 0.1)
    gone = []
    for number in range(12):
        rollouts = toy.play(learner, seed=number, reward=lambda *_: 0.0)
        rows = [_row(c) for r in rollouts for c in r.root.completions["solo"]]
        with torch.no_grad():
            now, _ = learner.policies["solo"].logprobs(rows, temperature=1.0)
            then, _ = start.logprobs(rows, temperature=1.0)
        gone.append(float((then - now).exp().sub(then - now).mean()) - 1.0)
        learner.update(rollouts)
    assert sum(gone[-3:]) < 0.9 * sum(gone[:3])

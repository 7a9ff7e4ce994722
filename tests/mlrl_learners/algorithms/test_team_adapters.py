"""Agents as adapters on one base model: what is trained, and that nothing else changes."""

import pytest
import torch

from mlrl_learners.config.option_places import merge_options
from tests.mlrl_learners.algorithms.team_learners import (
    AGENTS,
    LORA,
    METHODS,
    base_of,
    equal,
    make,
    weights_of,
    without,
)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_adapters_and_leaves_base_and_frozen_agents_as_they_were(name, toy):
    learner = make(name, **merge_options(LORA, METHODS[name], {"team": {"frozen": ["third"]}}))
    base = base_of(learner)
    before = {who: weights_of(policy) for who, policy in learner.policies.items()}
    for seed in range(2):
        learner.update(toy.play(learner, seed=seed))
    assert len({id(policy.model) for policy in learner.policies.values()}) == 1
    assert equal(base_of(learner), base)
    assert all(not equal(before[who], weights_of(learner.policies[who])) for who in AGENTS[:2])
    assert list(learner.optimizers) == ["left", "right"]
    assert learner.policies["third"].parameters() == []


def test_updating_one_adapter_leaves_the_others_and_the_base_identical(toy):
    learner = make(**LORA)
    rollouts = toy.play(learner)
    base, before = base_of(learner), {a: weights_of(learner.policies[a]) for a in AGENTS}
    learner.update(without(rollouts, "right", "third"))
    changed = [a for a in AGENTS if not equal(before[a], weights_of(learner.policies[a]))]
    assert changed == ["left"]
    assert equal(base_of(learner), base)


def test_what_one_agent_learns_does_not_hang_on_the_adapters_beside_it(toy):
    together, alone = make(**LORA), make(**LORA)
    rollouts = toy.play(together)
    together.update(rollouts)
    alone.update(without(rollouts, "right", "third"))
    ours, theirs = (weights_of(learner.policies["left"]) for learner in (together, alone))
    assert equal(ours, theirs)


@pytest.mark.parametrize("name", ["magrpo", "ippo", "madpo"])
def test_relabelling_agents_relabels_their_adapters_and_changes_nothing_else(name, toy):
    other = {"left": "x", "right": "y", "third": "z"}
    learner = make(name, **merge_options(LORA, METHODS[name]))
    renamed = make(name, agents=tuple(other.values()), **merge_options(LORA, METHODS[name]))
    learner.update(toy.play(learner))
    renamed.update(toy.play(renamed))
    for agent in AGENTS:
        ours, theirs = learner.policies[agent], renamed.policies[other[agent]]
        assert equal(weights_of(ours), weights_of(theirs))


def test_an_adapter_learns_what_full_weights_would_in_its_directions(toy, monkeypatch):
    """At the start the gradient of the upper matrix is the full one seen through the lower."""
    full, adapted = (
        make(agents=("left",)),
        make(agents=("left",), **merge_options(LORA, {"lora": {"targets": ["o_proj"]}})),
    )
    rollouts = toy.play(full)
    full_gradients, gradients = [], []
    for learner, found in ((full, full_gradients), (adapted, gradients)):
        weights = learner.policies["left"].parameters()
        monkeypatch.setattr(
            learner.optimizers["left"],
            "step",
            lambda weights=weights, found=found: found.extend(w.grad for w in weights) or 1.0,
        )
        learner.update(rollouts)
    names = [name for name, _ in full.policies["left"].model.named_parameters()]
    places = [place for place, name in enumerate(names) if "o_proj" in name]
    downs = adapted.policies["left"].parameters()[::2]
    scale = adapted.config.lora.alpha / adapted.config.lora.rank
    for place, down, up in zip(places, downs, gradients[1::2], strict=True):
        assert torch.allclose(up, scale * full_gradients[place] @ down.T, atol=1e-5)


def test_all_agents_may_share_one_adapter(toy):
    learner = make(**merge_options(LORA, {"team": {"share_weights": True}}))
    base = base_of(learner)
    learner.update(toy.play(learner))
    assert list(learner.optimizers) == ["shared"]
    assert equal(base_of(learner), base)


def test_one_batch_serves_all_agents_that_share_a_base(monkeypatch):
    learner = make(**merge_options(LORA, {"team": {"frozen": ["third"]}}))
    calls = []
    for policy in learner.policies.values():
        plain = policy.complete
        monkeypatch.setattr(
            policy,
            "complete",
            lambda prompts, *a, plain=plain, **o: (
                calls.append(o["adapters"]) or plain(prompts, *a, **o)
            ),
        )
    answers = learner.act([dict.fromkeys(AGENTS, "a"), {"right": "b"}], num_samples=2)
    assert calls == [["left", "right", None, "right"]]
    assert [list(answer) for answer in answers] == [list(AGENTS), ["right"]]


def test_sampled_and_trained_logprobs_agree_for_every_agent_of_a_mixed_batch(toy):
    options = merge_options(
        {"sampling": {"temperature": 0.7, "top_p": 0.9, "max_new_tokens": 12}}, LORA
    )
    learner = make(**merge_options(options, {"team": {"frozen": ["third"]}}))
    for seed in range(2):
        learner.update(toy.play(learner, seed=seed))
    prompts = [dict.fromkeys(AGENTS, text) for text in ("short", "a longer one that is padded")]
    for answer in learner.act(prompts, num_samples=4):
        for agent, completions in answer.items():
            rows = [_row(completion) for completion in completions]
            trained, _ = learner.policies[agent].logprobs(rows, temperature=0.7)
            sampled = torch.tensor([lp for c in completions for lp in c.logprobs])
            assert float((sampled - trained.detach()).abs().max()) < 1e-4


def _row(completion):
    from mlrl_learners.engine import TokenRow

    return TokenRow.sampled(completion)


def test_references_and_critics_of_adapters_need_no_model_more(toy):
    learner = make("ippo", **merge_options(LORA, {"penalty": {"kl_coef": 0.1}}))
    models = {id(policy.model) for policy in learner.policies.values()}
    models |= {id(critic.trunk.model) for critic in learner.critics.critics.values()}
    models |= {id(policy.model) for policy in learner.reward_terms._references.values()}
    assert len(models) == 1


def test_critics_may_have_a_base_of_their_own(toy):
    learner = make("ippo", **merge_options(LORA, {"critic": {"model": "tiny-random-gpt2"}}))
    trunks = [critic.trunk for critic in learner.critics.critics.values()]
    assert {trunk.model.config.model_type for trunk in trunks} == {"gpt2"}
    assert len({id(trunk.model) for trunk in trunks}) == 1
    metrics = learner.update(toy.play(learner))
    assert metrics["left/critic_grad_norm"] > 0


def test_a_reward_model_is_an_adapter_on_the_same_base(toy):
    learner = make("marlhf", **LORA)
    trunk = learner.reward_model._critic.trunk
    before = weights_of(trunk)
    assert trunk.model is learner.policies["left"].model
    learner.update(toy.play(learner))
    assert not equal(before, weights_of(trunk))

"""Properties of the updates of every method, whatever it computes advantages from.

The formulas themselves have slow twins beside `mlrl_learners.functional`; here whole updates are
looked at: what is read, what is trained, and what must change nothing.
"""

import dataclasses
import math

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.engine import TokenRow
from mlrl_learners.errors import NumericsError
from mlrl_learners.registry import BUILT_IN
from mlrl_learners.types import Node
from tests.mlrl_learners.processors import needs_bfloat16

TEAM, SOLO = ("left", "right"), ("solo",)
GROUP = ["magrpo", "mareinforce", "marloo", "maremax"]
CRITIC = ["ippo", "mappo", "iac", "maac"]
SINGLE = [spec.name for spec in BUILT_IN if spec.max_agents == 1]
GRADIENTS = [*GROUP, *CRITIC, "grpo", "rloo", "reinforce_pp", "ppo"]
# Rewards of marlhf are scores of a model that learns in the same update.
METHODS = [spec.name for spec in BUILT_IN if spec.name != "marlhf"]


def make(name, seed=0, **options):
    agents = SOLO if name in SINGLE else TEAM
    once = {} if name == "sft" else {"optimizer": {"epochs": 1}}
    small = merge_options(
        {"model": "tiny-random", "sampling": {"max_new_tokens": 8}, "group": {"size": 4}},
        once,
        options,
    )
    return mlrl_learners.make(name, agents=agents, seed=seed, **small)


def weights(learner):
    return [p.clone() for policy in learner.policies.values() for p in policy.model.parameters()]


def count_forwards(learner):
    """Count passes through every decoder, whoever asks."""
    counts = []
    for policy in learner.policies.values():
        policy.model.get_decoder().register_forward_pre_hook(lambda *_: counts.append(1))
    return counts


def swapped(rollout):
    """The same play with the names of the agents exchanged."""
    other = dict(zip(TEAM, TEAM[::-1], strict=True))
    node = rollout.root
    steps = tuple(
        dataclasses.replace(
            step,
            samples={other[agent]: k for agent, k in step.samples.items()},
            rewards={other[agent]: value for agent, value in step.rewards.items()},
        )
        for step in node.steps
    )
    completions = {other[agent]: group for agent, group in node.completions.items()}
    return dataclasses.replace(rollout, root=Node(node.turn, node.observations, completions, steps))


@pytest.mark.parametrize("change", ["micro-batches", "padding", "permuted", "relabelled"])
@pytest.mark.parametrize("name", METHODS)
def test_loss_and_gradients_hang_on_nothing_but_what_was_played(name, change, toy, monkeypatch):
    if change == "relabelled" and name in SINGLE:
        pytest.skip("one agent has no other name to take")
    shared = {"team": {"share_weights": True}} if change == "relabelled" else {}
    learner = make(name, **shared)
    other = make(
        name,
        **merge_options(
            shared, {"compute": {"micro_batch_tokens": 1}} if change == "micro-batches" else {}
        ),
    )
    if change == "padding":
        for policy in other.policies.values():
            policy.engine.override(packs_prompts=False)  # pads rows to the longest
    rollouts = toy.play(learner)
    shown = {
        "permuted": lambda: rollouts[::-1],
        "relabelled": lambda: [swapped(rollout) for rollout in rollouts],
    }.get(change, lambda: rollouts)()
    expected, logged = toy.observed(learner, rollouts, monkeypatch)
    found, also = toy.observed(other, shown, monkeypatch)
    policies = len(learner.optimizers)  # a central critic tells agents apart, as it should
    for mine, theirs in zip(found[:policies], expected[:policies], strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)
        assert float(theirs.abs().max()) > 1e-4
    for key in (key for key in logged if key.endswith("/loss")):
        assert also[key] == pytest.approx(logged[key], abs=1e-5)


@pytest.mark.parametrize("name", GRADIENTS)
def test_at_the_first_step_the_ratio_is_one(name, toy, monkeypatch):
    """At temperature 0.7 and top-p 0.9, lengths mixed: sampled and trained odds are the same."""
    read_all = {} if name in (*CRITIC, "ppo") else {"baseline": {"skip_equal_groups": False}}
    learner = make(
        name, **merge_options(read_all, {"sampling": {"temperature": 0.7, "top_p": 0.9}})
    )
    answers = [c for r in toy.play(learner) for group in r.root.completions.values() for c in group]
    for policy in learner.policies.values():
        rows = [TokenRow.sampled(c) for c in answers]
        now, _ = policy.logprobs(rows, temperature=0.7)
        then = torch.tensor([lp for c in answers for lp in c.logprobs])
        assert float((now.detach().cpu() - then).abs().max()) < 1e-4
    _, metrics = toy.observed(learner, toy.play(learner), monkeypatch)
    agent = learner.agents[0]
    assert metrics[f"{agent}/kl"] == pytest.approx(0.0, abs=1e-6)
    assert metrics[f"{agent}/clip_fraction"] == 0.0


@pytest.mark.parametrize("name", [*GROUP[:1], *GROUP[2:], "grpo", "rloo", "reinforce_pp"])
def test_equal_rewards_are_filtered_before_any_forward(name, toy):
    learner = make(name)
    rollouts = toy.play(learner, reward=lambda *_: 0.7)
    before, counts = weights(learner), count_forwards(learner)
    metrics = learner.update(rollouts)
    assert counts == []
    assert metrics[f"{learner.agents[0]}/zero_variance_rate"] == 1.0
    assert all(map(torch.equal, before, weights(learner)))


@pytest.mark.parametrize("name", [*GROUP[:1], *GROUP[2:], "grpo", "rloo", "reinforce_pp"])
def test_equal_rewards_that_are_read_all_the_same_have_a_gradient_of_zero(name, toy, monkeypatch):
    learner = make(name, baseline={"skip_equal_groups": False})
    rollouts = toy.play(learner, reward=lambda *_: 0.7)
    counts = count_forwards(learner)
    found = toy.gradients(learner, rollouts, monkeypatch)
    assert counts
    assert [float(each.abs().max()) for each in found] == [0.0] * len(learner.policies)


def test_of_two_tasks_only_the_one_with_a_choice_is_read(toy):
    learner = make("magrpo")
    rollouts = toy.play(learner, reward=toy.letters)
    equal = [dataclasses.replace(rollouts[0], root=_paid(rollouts[0].root, 0.5)), rollouts[1]]
    read = []
    policy = learner.policies["left"]
    forward = policy.logprobs_and_states
    policy.logprobs_and_states = lambda rows, **options: (
        read.extend(rows),
        forward(rows, **options),
    )[1]
    metrics = learner.update(equal)
    assert {row.prompt_ids for row in read} == {
        c.prompt_ids for c in rollouts[1].root.completions["left"]
    }
    assert metrics["left/zero_variance_rate"] == 0.5


def _paid(node, reward):
    steps = tuple(
        dataclasses.replace(step, rewards=dict.fromkeys(step.rewards, reward))
        for step in node.steps
    )
    return dataclasses.replace(node, steps=steps)


def test_the_four_baselines_step_apart_and_where_their_formulas_say(toy):
    """Rewards 0, 1, 1: the mean and leave-one-out raise the good answers, no baseline only them;
    the maximum only lowers the bad one. Leave-one-out steps as the mean does, times 3/2."""
    after, rollouts = {}, None
    for name in GROUP:
        learner = make(name, group={"size": 3}, optimizer={"lr": 1e-3}, loss={"kind": "sequence"})
        rollouts = rollouts or _ranked(toy.play(learner), (0.0, 1.0, 1.0))
        before, metrics = _odds(learner, rollouts), learner.update(rollouts)
        moved = [now - then for now, then in zip(_odds(learner, rollouts), before, strict=True)]
        after[name] = (weights(learner), moved, metrics["left/grad_norm"])
    for i, one in enumerate(GROUP):
        for two in GROUP[i + 1 :]:
            different = [not torch.equal(a, b)
                         for a, b in zip(after[one][0], after[two][0], strict=True)]  # fmt: skip
            assert any(different), (one, two)
    norms = {name: norm for name, (_, _, norm) in after.items()}
    assert norms["marloo"] == pytest.approx(1.5 * norms["magrpo"], rel=1e-4)
    assert len({round(norm, 6) for norm in norms.values()}) == 4
    gaps = {name: sum(moved[1:3]) / 2 - moved[0] for name, (_, moved, _) in after.items()}
    assert all(gap > 0 for gap in gaps.values())  # good answers gain on bad ones everywhere
    assert sum(after["mareinforce"][1][1:3]) > 0  # what was paid became likelier
    assert after["maremax"][1][0] < 0  # what was not became less likely


def _ranked(rollouts, rewards):
    """One task whose j-th joint answer earned the j-th reward."""
    (first, *_) = rollouts
    steps = tuple(
        dataclasses.replace(step, rewards=dict.fromkeys(TEAM, reward))
        for step, reward in zip(first.root.steps, rewards, strict=True)
    )
    return [dataclasses.replace(first, root=dataclasses.replace(first.root, steps=steps))]


def _odds(learner, rollouts):
    """The log-probability of each of the left agent's answers to the first task."""
    answers = rollouts[0].root.completions["left"]
    rows = [TokenRow(c.prompt_ids, c.token_ids) for c in answers]
    with torch.no_grad():
        logprobs, _ = learner.policies["left"].logprobs(rows, temperature=1.0)
    return [float(part.sum()) for part in logprobs.split([len(row.token_ids) for row in rows])]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("name", METHODS)
def test_a_reward_that_is_no_number_never_passes_silently(name, bad, toy):
    """One among equal ones is where comparisons would lose it."""
    learner = make(name)
    before = weights(learner)
    rollouts = toy.play(learner, reward=lambda *_: 1.0)
    steps = list(rollouts[0].root.steps)
    steps[1] = dataclasses.replace(steps[1], rewards=dict.fromkeys(learner.agents, bad))
    root = dataclasses.replace(rollouts[0].root, steps=tuple(steps))
    agent = learner.agents[0]
    with pytest.raises(NumericsError, match=f"the reward of '{agent}' in turn 0 of task '' is"):
        learner.update([dataclasses.replace(rollouts[0], root=root), rollouts[1]])
    assert all(map(torch.equal, before, weights(learner)))


@pytest.mark.parametrize("name", METHODS)
def test_weights_that_are_no_numbers_never_pass_silently(name, toy):
    learner = make(name)
    rollouts = toy.play(learner)
    with torch.no_grad():
        for policy in learner.policies.values():
            policy.model.model.norm.weight.fill_(math.nan)
    with pytest.raises(NumericsError):
        learner.update(rollouts)


@needs_bfloat16
@pytest.mark.parametrize("name", ["magrpo", "ippo", "madpo", "sft"])
def test_autocast_computes_roughly_over_masters_that_stay_exact(name, toy, monkeypatch):
    exact, rough = make(name), make(name, compute={"precision": "bf16"})
    rollouts = toy.play(exact)
    expected = toy.gradients(exact, rollouts, monkeypatch)[0]
    found = toy.gradients(rough, rollouts, monkeypatch)[0]
    assert found.dtype == torch.float32
    assert not torch.allclose(found, expected, rtol=1e-5, atol=0.0)
    cosine = torch.nn.functional.cosine_similarity(found, expected, dim=0)
    assert float(cosine) > 0.99
    rough.update(rollouts)
    states = rough.optimizers["left"]._adamw.state.values()
    masters = [*weights(rough), *(s["exp_avg"] for s in states), *(s["exp_avg_sq"] for s in states)]
    assert {tensor.dtype for tensor in masters} == {torch.float32}


@pytest.mark.parametrize("name", ["magrpo", "ippo", "madpo", "sft"])
def test_gradient_checkpointing_reads_again_to_the_same_effect(name, toy, monkeypatch):
    plain, saving = make(name), make(name, compute={"gradient_checkpointing": True})
    rollouts = toy.play(plain)
    reads = {}
    for learner in (plain, saving):
        layers = learner.policies["left"].model.model.layers
        counted = reads.setdefault(id(learner), [])
        layers[0].mlp.register_forward_pre_hook(lambda *_, c=counted: c.append(1))
    expected = toy.gradients(plain, rollouts, monkeypatch)
    found = toy.gradients(saving, rollouts, monkeypatch)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert len(reads[id(saving)]) > len(reads[id(plain)])


@pytest.mark.parametrize("name", METHODS)
def test_the_seed_decides_everything(name, toy):
    found = []
    for seed in (0, 0, 1):
        learner = make(name, seed, optimizer={"lr": 1e-3})
        learner.update(toy.play(learner))
        found.append(weights(learner))
    assert all(map(torch.equal, found[0], found[1]))
    assert not all(map(torch.equal, found[0], found[2]))


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("name", ["magrpo", "ippo"])
def test_each_update_logs_what_each_agent_did(name, share, toy):
    learner = make(name, team={"share_weights": share})
    rollouts = toy.play(learner)
    metrics = learner.update(rollouts)
    for agent in TEAM:
        answers = [c for r in rollouts for c in r.root.completions[agent]]
        rows = [TokenRow.sampled(c) for c in answers]
        lengths = [len(c.token_ids) for c in answers]
        assert metrics[f"{agent}/completion_tokens"] == pytest.approx(sum(lengths) / len(lengths))
        cut = sum(c.finish_reason == "length" for c in answers)
        assert metrics[f"{agent}/truncated_rate"] == pytest.approx(cut / len(answers))
        assert metrics[f"{agent}/zero_variance_rate"] == 0.0
        assert metrics[f"{agent}/kl"] == pytest.approx(0.0, abs=1e-6)
        assert metrics[f"{agent}/grad_norm"] > 0
        fresh = make(name, team={"share_weights": share})
        temperature = fresh.config.sampling.temperature
        _, entropy = fresh.policies[fresh.policy_of[agent]].logprobs(rows, temperature=temperature)
        assert metrics[f"{agent}/entropy"] == pytest.approx(float(entropy.mean()), abs=1e-4)

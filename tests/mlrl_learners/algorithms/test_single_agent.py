import itertools
import math

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.testing import check_learner

NAMES = ["grpo", "rloo", "reinforce_pp", "ppo"]
TEAMS = {"grpo": "magrpo", "rloo": "marloo", "reinforce_pp": "mareinforce", "ppo": "ippo"}


def make(name, seed=0, agents=("solo",), **options):
    small = {"sampling": {"max_new_tokens": 8}, "compute": {"device": "cpu"}, "group": {"size": 8}}
    return mlrl_learners.make(
        name, agents=agents, model="tiny-random", seed=seed, **merge_options(small, options)
    )


@pytest.mark.parametrize("name", NAMES)
def test_several_agents_are_told_which_learner_is_theirs(name):
    with pytest.raises(ConfigError, match=rf"{name} trains one agent, got 2 \(left, right\)"):
        make(name, agents=("left", "right"))
    with pytest.raises(ConfigError, match=f"take {TEAMS[name]}, "):
        make(name, agents=("left", "right"))


@pytest.mark.parametrize(
    ("name", "team", "options"),
    [
        ("grpo", "magrpo", {"baseline": {"normalize_std": True}, "loss": {"kind": "grpo"}}),
        ("rloo", "marloo", {}),
        (
            "reinforce_pp",
            "mareinforce",
            {"baseline": {"normalize_batch": True}, "loss": {"kind": "token_mean"}},
        ),
        ("ppo", "ippo", {}),
        ("dpo", "madpo", {}),
    ],
)
def test_one_agent_is_updated_to_the_last_bit_as_by_the_name_for_teams(name, team, options, toy):
    """What the two differ in, if anything, is what the table in docs/learners.md says."""
    solo, teamed = (
        make(name, optimizer={"lr": 1e-3}),
        make(team, **merge_options(options, {"optimizer": {"lr": 1e-3}})),
    )
    assert solo.config == teamed.config
    for learner in (solo, teamed):
        learner.update(toy.play(learner))
    parameters = [learner.policies["solo"].model.parameters() for learner in (solo, teamed)]
    assert all(torch.equal(a, b) for a, b in zip(*parameters, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_named(name):
    with pytest.raises(UnknownNameError, match="unknown option 'group_sise'"):
        make(name, group_sise=4)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_wins_over_the_preset(name):
    assert make(name, loss={"clip_high": 0.3, "kind": "gspo"}).config.loss.clip_high == 0.3


def test_the_group_relative_ones_each_follow_their_own_gradient(toy, monkeypatch):
    rollouts = toy.play(make("grpo"))
    names = ["grpo", "rloo", "reinforce_pp", "magrpo"]
    found = [toy.gradients(make(name), rollouts, monkeypatch)[0] for name in names]
    for one, other in itertools.combinations(found, 2):
        assert not torch.allclose(one, other, rtol=1e-2)


def test_grpo_divides_by_the_deviation_of_each_group(toy, monkeypatch):
    (rollout,) = toy.play(make("grpo"), tasks=("one",))
    rewards = [step.rewards["solo"] for step in rollout.root.steps]
    mean = sum(rewards) / len(rewards)
    std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    (plain,) = toy.gradients(make("magrpo", loss={"kind": "grpo"}), [rollout], monkeypatch)
    (grpo,) = toy.gradients(make("grpo"), [rollout], monkeypatch)
    assert torch.allclose(grpo, plain / (std + 1e-4), atol=1e-5)


def test_rloo_sums_over_tokens_with_the_mean_of_the_others_as_baseline(toy, monkeypatch):
    rollouts = toy.play(make("grpo"))
    (summed,) = toy.gradients(make("magrpo", loss={"kind": "sequence"}), rollouts, monkeypatch)
    (rloo,) = toy.gradients(make("rloo"), rollouts, monkeypatch)
    assert torch.allclose(rloo, summed * 8 / 7, atol=1e-5)


def test_reinforce_pp_normalizes_over_all_answers_of_an_update(toy, monkeypatch):
    rollouts = toy.play(make("grpo"))
    learner = make("reinforce_pp")
    (found,) = toy.gradients(learner, rollouts, monkeypatch)
    rewards = [step.rewards["solo"] for r in rollouts for step in r.root.steps]
    mean = sum(rewards) / len(rewards)
    std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    for rollout in rollouts:
        for step in rollout.root.steps:
            step.rewards["solo"] = (step.rewards["solo"] - mean) / std
    plain = make("mareinforce", loss={"kind": "token_mean"})
    assert torch.allclose(found, toy.gradients(plain, rollouts, monkeypatch)[0], atol=1e-5)


def test_an_update_of_equal_rewards_changes_nothing(toy):
    learner = make("reinforce_pp")
    rollouts = toy.play(learner, reward=lambda *_: 0.7)
    before = [p.clone() for p in learner.policies["solo"].model.parameters()]
    learner.update(rollouts)
    after = learner.policies["solo"].model.parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_contract_of_a_learner_is_kept(name):
    check_learner(lambda: make(name, optimizer={"lr": 1e-3}))

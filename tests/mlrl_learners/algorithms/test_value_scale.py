"""Normalised values: the scale of the rewards changes nothing, and no estimate moves by itself."""

import pytest
import torch

import mlrl_learners
from mlrl_learners.algorithms.value_samples import ValueSample
from mlrl_learners.algorithms.value_scale import ValueScale
from mlrl_learners.errors import CheckpointError, ConfigError
from mlrl_learners.functional.credit import with_rewards

SMALL = {"sampling": {"max_new_tokens": 4}, "group": {"size": 3}, "compute": {"device": "cpu"}}


def make(kind, **critic):
    return mlrl_learners.make(
        "mappo" if kind == "central" else "ippo",
        agents=("left", "right"),
        model="tiny-random",
        critic={"kind": kind, "lr": 1e-2, **critic},
        optimizer={"lr": 1e-3},
        **SMALL,
    )


def fitted(toy, scale, kind, updates=2, **critic):
    """Return the metrics of updates on rewards of a scale, for answers of the first weights."""
    learner = make(kind, **critic)
    played = [toy.play(learner, seed=n, max_turns=2, reward=pay) for n in range(updates)]
    paid = [
        [with_rewards(each, lambda _, step, agent: scale * step.rewards[agent]) for each in some]
        for some in played
    ]
    return learner, [learner.update(rollouts) for rollouts in paid]


def pay(actions, agent):
    return len(actions[agent]) % 5 + 3.0


@pytest.mark.parametrize("kind", ["separate", "value_head", "central"])
def test_rewards_of_another_scale_are_learnt_alike(kind, toy):
    (_, its), (_, others) = (fitted(toy, k, kind, normalize=True) for k in (1.0, 128.0))
    name = "central" if kind == "central" else "left"
    for metric in ("value_loss", "explained_variance", "critic_grad_norm"):
        assert others[1][f"{name}/{metric}"] == pytest.approx(its[1][f"{name}/{metric}"], rel=1e-2)
    assert others[1][f"{name}/value"] == pytest.approx(128 * its[1][f"{name}/value"], rel=1e-3)
    assert others[1]["left/loss"] == pytest.approx(its[1]["left/loss"], rel=1e-2, abs=1e-4)


def test_without_normalisation_a_larger_scale_is_not_reached(toy):
    """From 0, steps of the same length reach values near 5, and none near 640."""
    values = [fitted(toy, k, "value_head")[1][1]["left/value"] for k in (1.0, 128.0)]
    assert values[1] < 10 * values[0]


def test_statistics_move_no_estimate_and_start_at_the_mean(toy):
    learner, _ = fitted(toy, 10.0, "separate", updates=1, normalize=True)
    rollouts = toy.play(learner, seed=7)
    before = learner.critics.estimate(rollouts)
    prompt = next(iter(before.prompts.values()))
    learner.critics.adapt([ValueSample("left", prompt, (0.0,), (500.0,))])
    after = learner.critics.estimate(rollouts)
    for key, values in before.values.items():
        assert after.values[key] == pytest.approx(values, rel=1e-4)


def test_a_value_without_targets_so_far_starts_at_the_mean_of_its_first_ones():
    head = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(head.weight), torch.nn.init.zeros_(head.bias)
    scale = ValueScale(head)
    columns = torch.zeros(2).long()
    scale.adapt(torch.tensor([40.0, 60.0]), columns, torch.ones(2))
    assert scale.to_returns(head(torch.ones(1, 2))).tolist() == [[50.0]]
    assert scale.normalize_old(torch.zeros(2), columns).tolist() == [0.0, 0.0]


def test_the_statistics_are_part_of_a_checkpoint(toy, tmp_path):
    learner, _ = fitted(toy, 10.0, "separate", updates=1, normalize=True)
    learner.save(tmp_path)
    files = list(tmp_path.rglob("value_scale.pt"))
    assert len(files) == 2
    files[0].unlink()
    with pytest.raises(CheckpointError, match="value_scale"):
        learner.load(tmp_path)


def test_a_critic_that_does_not_learn_has_no_statistics():
    with pytest.raises(ConfigError, match=r"critic\.normalize True means nothing with value_coef"):
        mlrl_learners.make(
            "ippo",
            agents=("left",),
            model="tiny-randm",
            critic={"value_coef": 0.0, "normalize": True},
        )

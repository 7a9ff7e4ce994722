"""Teams whose weights are in half precision."""

from dataclasses import replace

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies.loss_scale import LossScale
from mlrl_learners.testing.gradients import play_toy
from mlrl_learners.testing.toy_model import toy_model
from mlrl_learners.testing.toy_training import mean_return
from mlrl_learners.testing.toys import TOYS


def learner_of(dtype, **options):
    small = {
        "sampling": {"max_new_tokens": 6},
        "compute": {"device": "cpu"},
        "optimizer": {"lr": 1e-5},
        "group": {"size": 3},
    }
    return mlrl_learners.make(
        "magrpo",
        agents=["solo"],
        model="tiny-random",
        **merge_options(merge_options(small, options), {"compute": {"dtype": dtype}}),
    )


def masters_of(learner):
    return torch.cat([each.detach().flatten() for each in learner.optimizers["solo"]._trained])


def test_as_many_weights_move_in_bfloat16_as_in_float32(toy):
    """Five updates at a small rate: without masters 15 % moved, in float32 all."""
    shares = {}
    for dtype in ("float32", "bfloat16"):
        learner = learner_of(dtype, baseline={"skip_equal_groups": False})
        before = masters_of(learner).clone()
        for _ in range(5):
            learner.update(toy.play(learner, reward=lambda actions, _: float(len(actions["solo"]))))
        assert learner.optimizers["solo"].num_steps == 5
        shares[dtype] = float((masters_of(learner) != before).float().mean())
    assert shares["bfloat16"] >= shares["float32"] - 0.01
    assert shares["float32"] > 0.9


def test_a_team_in_bfloat16_goes_on_bit_by_bit_from_its_checkpoint(toy, tmp_path):
    one, two = (learner_of("bfloat16") for _ in range(2))
    one.update(toy.play(one))
    one.save(tmp_path)
    two.load(tmp_path)
    for each in (one, two):
        for seed in range(3):
            each.update(toy.play(each, seed=seed))
    assert torch.equal(masters_of(one), masters_of(two))
    pairs = zip(one.policies["solo"].parameters(), two.policies["solo"].parameters(), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in pairs)


@pytest.mark.parametrize(("dtype", "precision"), [("float16", "float32"), ("float32", "fp16")])
def test_a_team_in_float16_goes_on_bit_by_bit_from_its_checkpoint(dtype, precision, toy, tmp_path):
    one, two = (learner_of(dtype, compute={"precision": precision}) for _ in range(2))
    one.optimizers["solo"].scale.value = 2.0**40  # overflows
    one.update(toy.play(one))
    one.save(tmp_path)
    two.load(tmp_path)
    for each in (one, two):
        for seed in range(3):
            metrics = each.update(toy.play(each, seed=seed))
        assert metrics["solo/skipped_steps"] == 4.0
        assert metrics["solo/loss_scale"] == 2.0**36
        assert metrics["solo/grad_norm"] == 0.0
        each.optimizers["solo"].scale.value = 2.0**16
        assert each.update(toy.play(each, seed=4))["solo/grad_norm"] > 0
    assert torch.equal(masters_of(one), masters_of(two))
    assert one.optimizers["solo"].scale.state_dict() == two.optimizers["solo"].scale.state_dict()


@pytest.mark.parametrize("compute", [{"dtype": "float16"}, {"precision": "fp16"}])
def test_rewards_whose_gradients_underflow_are_learnt_from_with_a_scale(compute):
    """Rewards of 1e-6: without a scale, float16 has no gradient, and no weight moves."""
    toy = TOYS["retry"]
    small = replace(toy, play=lambda picks: replace(toy.play(picks), reward=1e-6 * any(picks[-1])))
    norms = {}
    for is_active in (True, False):
        learner = mlrl_learners.make(
            "magrpo",
            agents=["solo"],
            model=toy_model(),
            compute={"device": "cpu", **compute},
            sampling={"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
        )
        assert learner.optimizers["solo"].scale.is_active
        learner.optimizers["solo"].scale = LossScale(is_active=is_active)
        norms[is_active] = learner.update(play_toy(small, learner, 8))["solo/grad_norm"]
    assert norms[True] > 1e-8
    assert norms[False] < norms[True] / 10


@pytest.mark.slow
def test_float16_with_a_scale_learns_what_float32_learns():
    """Rewards of 1e-6, which float16 does not learn from without a scale."""
    toy = TOYS["retry"]
    small = replace(toy, play=lambda picks: replace(toy.play(picks), reward=1e-6 * any(picks[-1])))
    options = {
        "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
        "optimizer": {"lr": 1e-2},
        "group": {"size": 8},
    }
    after = {}
    for dtype, is_active in (("float32", False), ("float16", True), ("float16", False)):
        learner = mlrl_learners.make(
            "magrpo",
            agents=["solo"],
            model=toy_model(),
            compute={"device": "cpu", "dtype": dtype},
            **options,
        )
        learner.optimizers["solo"].scale = LossScale(is_active=is_active)
        before = mean_return(toy, learner, ["solo"])
        for number in range(15):
            learner.update(play_toy(small, learner, 8, seed=number))
        after[dtype, is_active] = mean_return(toy, learner, ["solo"]) - before
    assert after["float32", False] > 0.2
    assert after["float16", True] == pytest.approx(after["float32", False], abs=0.02)
    assert after["float16", False] < 0.05


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ippo", {"critic": {"kind": "separate"}}),
        ("ippo", {"critic": {"kind": "value_head"}}),
        ("mappo", {"critic": {"level": "token"}}),
        ("madpo", {"group": {"size": 4}}),
        ("marlhf", {}),
        ("sft", {}),
        ("magrpo", {"lora": {"rank": 2}}),
    ],
)
def test_every_method_scales_its_losses_in_float16(name, options):
    """Metrics of a float16 team are close to those of a float32 team, after one update."""
    found = {}
    for dtype in ("float32", "float16"):
        learner = mlrl_learners.make(
            name,
            agents=["left", "right"],
            model=toy_model(),
            **merge_options(
                {
                    "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
                    "compute": {"device": "cpu", "dtype": dtype},
                },
                options,
            ),
        )
        found[dtype] = learner.update(play_toy(TOYS["late_cost"], learner, 4))
    full, half = found["float32"], found["float16"]
    scales = {key for key in half if key.endswith(("loss_scale", "skipped_steps"))}
    assert half.keys() - scales == full.keys()
    assert {"left/loss_scale", "left/skipped_steps", "right/loss_scale"} <= scales
    critics = {key.removesuffix("value_loss") for key in full if key.endswith("/value_loss")}
    assert {f"{critic}critic_loss_scale" for critic in critics} <= scales
    for key in ("left/grad_norm", "right/grad_norm"):
        assert half[key] == pytest.approx(full[key], rel=0.05), key


def test_masters_of_another_model_are_a_clear_error(tmp_path):
    learner = learner_of("bfloat16")
    learner.save(tmp_path)
    path = tmp_path / "solo" / "optimizer.pt"
    state = torch.load(path, weights_only=True)
    state["masters"][0] = torch.zeros(3, 3)
    torch.save(state, path)
    with pytest.raises(CheckpointError, match=r"optimizer\.pt"):
        learner_of("bfloat16").load(tmp_path)


@pytest.mark.parametrize("compute", [{"dtype": "bfloat16"}, {"precision": "bf16"}])
def test_rounding_clips_no_answer_of_gspo_in_the_first_step(compute, toy):
    """Its clip range is 3e-4; sampling and training round mean log-probabilities by more."""
    learner = mlrl_learners.make(
        "magrpo",
        agents=["solo"],
        model="tiny-random",
        compute={"device": "cpu", **compute},
        sampling={"max_new_tokens": 6, "top_p": 1.0},
        loss={"kind": "gspo"},
    )
    policy = learner.policies["solo"]
    policy.engine.precision = compute.get("precision", "float32")  # also without such products
    rollouts = toy.play(learner, reward=lambda actions, _: float(len(actions["solo"])))
    with torch.no_grad():
        for weight in policy.parameters():  # as if sampling had rounded more
            weight.mul_(1.02)
    metrics = learner.update(rollouts)
    assert metrics["solo/clip_fraction"] == 0.0
    assert metrics["solo/kl"] > 0.0


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_rounding_is_no_divergence_from_the_starting_weights(estimator, toy):
    learner = learner_of(
        "bfloat16", penalty={"kl_coef": 1.0, "kl_in": "reward", "kl_estimator": estimator}
    )
    rollouts = toy.play(learner, reward=lambda *_: 1.0)
    charged = learner.reward_terms.apply(rollouts)
    assert {step.rewards["solo"] for each in charged for step in each.root.steps} == {1.0}

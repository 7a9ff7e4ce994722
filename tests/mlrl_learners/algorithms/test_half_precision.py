"""Teams whose weights are in half precision."""

import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import CheckpointError


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


def test_masters_of_another_model_are_a_clear_error(tmp_path):
    learner = learner_of("bfloat16")
    learner.save(tmp_path)
    path = tmp_path / "solo" / "optimizer.pt"
    state = torch.load(path, weights_only=True)
    state["masters"][0] = torch.zeros(3, 3)
    torch.save(state, path)
    with pytest.raises(CheckpointError, match=r"optimizer\.pt"):
        learner_of("bfloat16").load(tmp_path)

"""Real runs whose models are sharded over processes (`compute.fsdp`)."""

import json

import pytest
import torch
from safetensors.torch import load_file

from mlrl_learners.config.option_places import merge_options
from tests.mlrl_learners.launched_runs import (
    CHOICES,
    GROUPS,
    TIMES,
    distance,
    job,
    last_checkpoint,
    lines,
    parameters,
    run,
)

IN_PIECES = [
    job(
        "magrpo",
        iterations=2,
        **merge_options(
            GROUPS,
            {
                "penalty": {"kl_coef": 0.1},
                "compute": {"fsdp": True},
                "team": {"share_weights": True},
            },
        ),
    ),
    job("ippo", iterations=2, **merge_options(GROUPS, {"compute": {"fsdp": True}})),
    job(
        "madpo",
        iterations=2,
        **merge_options(CHOICES, {"compute": {"fsdp": True}}),
    ),
    job(
        "marlhf",
        iterations=2,
        **merge_options(GROUPS, {"reward_model": {"epochs": 2}, "compute": {"fsdp": True}}),
    ),
]


def assert_same_run(one, two):
    """Compare runs of models in pieces, whose gradients are summed in the order of the pieces."""
    # Rewards of a model have rounding of their own; a wrong gradient moves each parameter by about
    # 1e-3, here the sum over all is near.
    assert distance(parameters(one), parameters(two)) < {"marlhf": 2e-4}.get(one.name, 1e-5)
    assert lines(one / "episodes.jsonl") == lines(two / "episodes.jsonl")
    for mine, theirs in zip(
        lines(one / "metrics.jsonl"), lines(two / "metrics.jsonl"), strict=True
    ):
        assert mine.keys() == theirs.keys()
        for name in (name for name in mine if not name.endswith(TIMES)):
            assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-6), name
    for mine, theirs in zip(
        lines(one / "evaluations.jsonl"), lines(two / "evaluations.jsonl"), strict=True
    ):
        assert mine["task_returns"] == theirs["task_returns"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_models_in_pieces_end_where_whole_ones_do(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    run(one, IN_PIECES, 1)
    run(two, IN_PIECES, 2)
    for each in IN_PIECES:
        assert_same_run(one / each["name"], two / each["name"])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "processes",
    [
        pytest.param((2, 1), marks=pytest.mark.long),
        pytest.param((1, 2), marks=pytest.mark.slow),
    ],
)
def test_a_run_in_pieces_is_resumed_by_another_number_of_processes(tmp_path, processes):
    """What is saved is whole: weights and optimizer go on from it, in pieces or not."""
    train = {"eval_every": 0}
    options = merge_options(GROUPS, {"compute": {"fsdp": True}})
    run(tmp_path / "whole", [job("ippo", iterations=4, train=train, **options)], 1)
    for iterations, number in zip((2, 4), processes, strict=True):
        run(tmp_path / "two", [job("ippo", iterations=iterations, train=train, **options)], number)
    assert distance(parameters(tmp_path / "whole/ippo"), parameters(tmp_path / "two/ippo")) < 1e-5
    config = json.loads(
        (last_checkpoint(tmp_path / "two/ippo") / "learner/setup/config.json").read_text()
    )
    assert config["architectures"] == ["LlamaForCausalLM"]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param("bfloat16", marks=pytest.mark.slow),
        pytest.param("float16", marks=pytest.mark.long),
    ],
)
def test_masters_of_weights_in_pieces_are_saved_whole_and_resumed_bit_by_bit(tmp_path, dtype):
    options = merge_options(
        GROUPS,
        {"compute": {"fsdp": True, "dtype": dtype}, "optimizer": {"schedule": "linear"}},
    )
    late = {"optimizer": {"total_steps": 8, "lr": 1e-5}, "baseline": {"skip_equal_groups": False}}
    options = merge_options(options, late)
    for folder, stops in (("whole", [4]), ("parts", [2, 4])):
        for iterations in stops:
            train = {"eval_every": 0, "checkpoint_every": 2}
            run(
                tmp_path / folder, [job("magrpo", iterations=iterations, train=train, **options)], 2
            )
    whole, parts = (tmp_path / folder / "magrpo" for folder in ("whole", "parts"))
    assert distance(parameters(whole), parameters(parts)) == 0
    found = [
        torch.load(last_checkpoint(each) / "learner/setup/optimizer.pt", weights_only=True)[
            "masters"
        ]
        for each in (whole, parts)
    ]
    assert all(torch.equal(mine, found[1][number]) for number, mine in found[0].items())
    weights = {
        tuple(w.shape)
        for w in load_file(last_checkpoint(whole) / "learner/setup/model.safetensors").values()
    }
    assert {tuple(master.shape) for master in found[0].values()} == weights
    assert {master.dtype for master in found[0].values()} == {torch.float32}

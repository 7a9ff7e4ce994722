"""Checkpoints of teams: adapters, frozen agents, and what is refused."""

import json

import pytest

from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies import tiny_model
from tests.mlrl_learners.algorithms.team_learners import (
    AGENTS,
    LORA,
    METHODS,
    equal,
    make,
    weights_of,
)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_goes_on_to_the_bit_from_a_checkpoint_of_adapters_alone(name, toy, tmp_path):
    options = merge_options({"team": {"frozen": ["third"]}}, LORA, METHODS[name])
    learner = make(name, **options)
    learner.update(toy.play(learner))
    learner.save(tmp_path / "saved")
    learner.update(toy.play(learner, seed=1))
    resumed = make(name, **options)
    resumed.load(tmp_path / "saved")
    resumed.update(toy.play(resumed, seed=1))
    for who, policy in learner.policies.items():
        assert equal(weights_of(policy), weights_of(resumed.policies[who]))
    assert learner.act([dict.fromkeys(AGENTS, "a")]) == resumed.act([dict.fromkeys(AGENTS, "a")])
    stored = {path.name for path in tmp_path.rglob("*")}
    assert "model.safetensors" not in stored
    assert "adapter_model.safetensors" in stored


def test_a_checkpoint_of_other_policies_is_refused(tmp_path):
    make(**LORA).save(tmp_path)
    with pytest.raises(CheckpointError, match="is of a team"):
        make(**merge_options(LORA, {"team": {"share_weights": True}})).load(tmp_path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"model": tiny_model(1), **LORA}, "belongs to the weights of 'tiny-random'"),
        ({"lora": {"rank": 2}}, "another rank than lora.rank 2"),
        ({}, "do not fit"),
        (
            {"team": {"frozen": ["left"]}, "lora": {"rank": 3}, "model": tiny_model(1)},
            "belongs to the weights of",
        ),
    ],
)
def test_a_checkpoint_of_another_base_or_kind_is_refused(other, message, tmp_path):
    make(**LORA).save(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        make(**other).load(tmp_path)


def test_a_frozen_agent_is_named_but_not_stored(tmp_path):
    make(team={"frozen": ["third"]}).save(tmp_path)
    assert [path.name for path in (tmp_path / "third").iterdir()] == ["base.json"]
    assert json.loads((tmp_path / "third/base.json").read_text())["source"] == "tiny-random"


@pytest.mark.parametrize("text", ["{}", "[]", "3", "{", '{"policies": null}'])
@pytest.mark.parametrize(("name", "file"), [("magrpo", "team.json"), ("sft", "offline.json")])
def test_a_damaged_file_of_a_checkpoint_is_said_so(name, file, text, tmp_path):
    learner = make(name)
    learner.save(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(CheckpointError):
        learner.load(tmp_path)

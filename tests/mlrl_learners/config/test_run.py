import dataclasses
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.config.presets import presets
from mlrl_learners.config.run import (
    EnvConfig,
    LearnerConfig,
    RolloutOverrides,
    RunConfig,
    TrainConfig,
    from_mapping,
    known_keys,
    load_config,
    save_config,
    to_mapping,
)
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.types import RolloutConfig

MINIMAL = {"env": {"id": "mlrl/story-v1"}}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", presets())
def test_save_then_load_is_the_identity_for_every_preset(name, tmp_path):
    config = load_config(name)
    save_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config


@given(
    options=st.dictionaries(st.text(), json_values, max_size=3),
    model=st.none() | st.text() | st.dictionaries(st.text(), st.text(), max_size=2),
    num_samples=st.none() | st.integers(1, 9),
    wandb_name=st.sampled_from([None, "off", "1e-5", "010", "null", "true", "2026-01-01"]),
)
def test_save_then_load_is_the_identity_for_any_option(
    options, model, num_samples, wandb_name, tmp_path_factory
):
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    config = RunConfig(
        EnvConfig("x", options),
        LearnerConfig("y", model, options),
        RolloutOverrides(num_samples),
        TrainConfig(eval_options=options),
    )
    config = dataclasses.replace(
        config, logging=dataclasses.replace(config.logging, wandb_name=wandb_name)
    )
    save_config(config, path)
    assert load_config(path) == config


def test_every_key_is_written_out():
    mapping = to_mapping(from_mapping({**MINIMAL, "ray": {"enabled": True}}))
    assert [f"{s}.{k}" for s, values in mapping.items() for k in values] == known_keys()


@pytest.mark.parametrize(
    ("words", "section", "name", "value"),
    [
        (["--train.iterations", "3"], "train", "iterations", 3),
        (["--train.iterations=3"], "train", "iterations", 3),
        (["--train.eval_tasks", "null"], "train", "eval_tasks", None),
        (["--train.eval_options.split", "test"], "train", "eval_options", {"split": "test"}),
        (["--env.options.max_turns", "2"], "env", "options", {"max_turns": 2}),
        (["--env.split", "off"], "env", "options", {"split": "off"}),
        (["--env.options", "{a: 1}"], "env", "options", {"a": 1}),
        (["--learner.optimizer.lr", "1e-5"], "learner", "options", {"optimizer": {"lr": 1e-5}}),
        (["--learner.lr", "-1"], "learner", "options", {"lr": -1}),  # the learner tells its place
        (["--learner.group_size", "3"], "learner", "options", {"group": {"size": 3}}),
        (["--learner.model.aux", "m"], "learner", "model", {"aux": "m"}),
        (
            ["--learner.team.system_prompts.aux", "hi"],
            "learner",
            "options",
            {"team": {"system_prompts": {"aux": "hi"}}},
        ),
        (["--logging.wandb", "off"], "logging", "wandb", "off"),
        (["--logging.wandb_name", "2024"], "logging", "wandb_name", "2024"),
    ],
)
def test_an_override_sets_its_key(words, section, name, value):
    assert getattr(getattr(from_mapping(MINIMAL, words), section), name) == value


def test_an_override_leaves_the_other_options_alone():
    raw = {"env": {"id": "x", "options": {"split": "train"}}}
    assert from_mapping(raw, ["--env.max_turns", "2"]).env.options == {
        "split": "train",
        "max_turns": 2,
    }
    assert raw["env"]["options"] == {"split": "train"}


def test_the_word_off_needs_no_quotes_in_a_file(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "env: {id: x}\nlogging: {wandb: off}\nlearner: {options: {optimizer: {lr: 1e-5}}}"
    )
    config = load_config(tmp_path / "c.yaml")
    assert config.logging.wandb == "off"
    assert config.learner.options == {"optimizer": {"lr": 1e-5}}


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("--train.iteration", "train.iterations"),
        ("--trian.seed", "train.seed"),
        ("--env.idd", "env.id"),
        ("--learner.nmae", "learner.name"),
        ("--seed", "train.seed"),
        ("--train.seed.x", "train.seed"),
        ("--rollout.joint_mod", "rollout.joint_mode"),
    ],
)
def test_an_unknown_override_is_named_with_the_nearest_key(key, nearest):
    with pytest.raises(UnknownNameError) as caught:
        from_mapping(MINIMAL, [key, "1"])
    assert key.removeprefix("--") in str(caught.value)
    assert f"did you mean {nearest!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "named", "nearest"),
    [
        ({"env": {"id": "x", "option": {}}}, "env.option", "env.options"),
        ({**MINIMAL, "trian": {}}, "trian", "train"),
        ({**MINIMAL, "stage": {}}, "stage", "did you mean 'stages'"),
        ({**MINIMAL, "train": {"iteration": 3}}, "train.iteration", "train.iterations"),
        ({**MINIMAL, "learner": {"group_size": 3}}, "learner.group_size", ""),
    ],
)
def test_an_unknown_key_of_a_file_is_named_with_the_nearest_key(raw, named, nearest):
    with pytest.raises(UnknownNameError) as caught:
        from_mapping(raw)
    assert repr(named) in str(caught.value)
    assert nearest in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "env.id"),
        ([], "mapping"),
        ({"env": "x"}, "env must be a mapping"),
        ({"env": {"id": 5}}, "env.id must be text, got 5"),
        ({"env": {"id": "x", "options": 3}}, "env.options must be a mapping, got 3"),
        ({**MINIMAL, "learner": {"model": 5}}, "learner.model must be text or a mapping or null"),
        ({**MINIMAL, "train": {"seed": "a"}}, "train.seed must be an int, got 'a'"),
        ({**MINIMAL, "train": {"iterations": 0}}, "train.iterations must be at least 1, got 0"),
        ({**MINIMAL, "logging": {"wandb": "on"}}, "must be off or offline or online, got 'on'"),
        (
            {**MINIMAL, "rollout": {"joint_mode": "x"}},
            "must be aligned or cross or replay or null, got 'x'",
        ),
    ],
)
def test_a_wrong_value_is_one_line_that_names_its_key(raw, message):
    with pytest.raises(ConfigError, match=message) as caught:
        from_mapping(raw)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [["train.seed", "1"], ["--train.seed"], ["--", "1"]])
def test_overrides_are_pairs_of_key_and_value(words):
    with pytest.raises(ConfigError):
        from_mapping(MINIMAL, words)


def test_an_unknown_preset_is_named_with_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"'storry'.*'story'"):
        load_config("storry")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train.iterations", "x"], "train.iterations must be an int, got 'x'"),
        (["--train.iterations", "1.5"], "train.iterations must be an int, got '1.5'"),
        (["--train.eval_tasks", "x"], "train.eval_tasks must be an int or null, got 'x'"),
        (["--logging.wandb", "on"], "must be off or offline or online, got 'on'"),
        (["--learner.model", "5"], "learner.model must be text or a mapping or null, got 5"),
        (["--learner.model.aux", "5"], "learner.model must be text or a mapping or null"),
        (["--env.options", "5"], "env.options must be a mapping, got 5"),
    ],
)
def test_a_wrong_override_is_one_line_that_names_its_key(words, message):
    with pytest.raises(ConfigError, match=message) as caught:
        from_mapping(MINIMAL, words)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named_with_the_nearest_one_beside_it(tmp_path):
    (tmp_path / "mine.yaml").write_text("env: {id: x}")
    with pytest.raises(UnknownNameError, match=r"mien\.yaml.*mine\.yaml"):
        load_config(tmp_path / "mien.yaml")


def test_broken_yaml_is_one_line_that_names_the_file(tmp_path):
    (tmp_path / "c.yaml").write_text("env: {id: x")
    with pytest.raises(ConfigError, match=r"c\.yaml") as caught:
        load_config(tmp_path / "c.yaml")
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match="pip install pyyaml"):
        load_config("tiny", ["--train.seed", "1"])


def test_rollout_overrides_change_only_what_they_name():
    asked = RolloutConfig(num_samples=8, joint_mode="cross", branching="chain")
    assert RolloutOverrides().apply(asked) == asked
    assert RolloutOverrides(branching="tree").apply(asked) == RolloutConfig(8, "cross", "tree")


def test_every_preset_has_a_line_for_people():
    assert all(presets().values())


def test_epochs_are_as_many_iterations_as_play_every_task_so_often():
    train = TrainConfig(epochs=1.5, tasks_per_iteration=4)
    assert train.in_iterations(9).iterations == 4  # 13.5 tasks
    assert TrainConfig(iterations=3).in_iterations(None).iterations == 3
    with pytest.raises(ConfigError, match="needs a number of tasks"):
        train.in_iterations(None)
    with pytest.raises(ConfigError, match=r"train\.epochs must be above 0, got 0"):
        TrainConfig(epochs=0)

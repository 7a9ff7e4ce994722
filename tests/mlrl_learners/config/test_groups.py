"""Groups of options: names, sizes, old names, and what errors and `mlrl list` say of them."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

import mlrl_learners
from mlrl_learners.algorithms.learner_configs import LEARNER_CONFIGS, default_config
from mlrl_learners.algorithms.loss_options import LossOptions
from mlrl_learners.algorithms.policy_gradient_options import GroupOptions
from mlrl_learners.cli import main
from mlrl_learners.config.groups import MAX_FIELDS, build_config, option_groups
from mlrl_learners.config.option_places import PLACES, grouped, merge_options, place_of
from mlrl_learners.config.stored import load_stored_config
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.registry import BUILT_IN

GOLDEN = Path(__file__).parent / "list_magrpo.txt"
DESIGN = (Path(__file__).parents[3] / "docs" / "design.md").read_text(encoding="utf-8")
OURS = [spec.name for spec in BUILT_IN]
# A value of each flat option that differs from its default and may stand alone.
FLAT = {
    "group_size": 3,
    "lr": 0.5,
    "temperature": 0.7,
    "max_new_tokens": 9,
    "share_weights": True,
    "lora_rank": 2,
    "precision": "bf16",
    "loss": "gspo",
    "gamma": 0.5,
    "episodes": "a.jsonl",
}


def groups_of(name):
    return {group.name: group for group in option_groups(default_config(name))}


def places(name):
    """Return the place of each old name that a learner has."""
    groups = groups_of(name)
    found = {old: place_of(old, groups).split(".") for old in PLACES}
    return {
        old: (group, field)
        for old, (group, field) in found.items()
        if group in groups and field in {each.name for each in groups[group].options}
    }


def flat_options(name):
    """Return some options of a learner by their old names."""
    found = {old: value for old, value in FLAT.items() if old in places(name)}
    if name in ("madpo", "dpo"):
        del found["gamma"]  # means nothing with a file
    return found | ({"loss": "ipo"} if name in ("madpo", "dpo") else {})


def test_every_built_in_learner_has_a_configuration():
    assert set(LEARNER_CONFIGS) == {spec.name for spec in BUILT_IN}


@pytest.mark.parametrize("name", OURS)
def test_a_group_has_at_most_ten_options_and_answers_a_question(name):
    for group in groups_of(name).values():
        assert 1 <= len(group.options) <= MAX_FIELDS
        assert group.summary.endswith(".")
        assert all(option.meaning for option in group.options), group.name


def test_the_table_of_the_documentation_names_every_option():
    shown = {
        group: set(re.findall(r"`(\w+)`", fields)) - set(OURS)
        for group, fields in re.findall(
            r"^\| `(\w+)` \| (?:who|whose|which|how|what) [^|]*\| ([^|]*) \|", DESIGN, re.MULTILINE
        )
    }
    fields = {}
    for name in OURS:
        for group in groups_of(name).values():
            if group.name:
                fields.setdefault(group.name, set()).update(each.name for each in group.options)
    assert shown == fields


@pytest.mark.parametrize("name", OURS)
def test_groups_are_frozen(name):
    for group in vars(default_config(name)).values():
        if dataclasses.is_dataclass(group):
            with pytest.raises(dataclasses.FrozenInstanceError):
                group.size = 3


@pytest.mark.parametrize("name", [each for each in OURS if each != "marlhf"])
def test_flat_options_in_their_groups_are_the_same_configuration(name):
    config_type, defaults = LEARNER_CONFIGS[name]
    flat = flat_options(name)
    config = build_config(config_type, merge_options(defaults, grouped(name, flat)))
    assert len(flat) >= 7
    for old, value in flat.items():
        group, field = places(name)[old]
        assert getattr(getattr(config, group), field) == value


@pytest.mark.parametrize("name", OURS)
def test_every_old_name_is_told_its_place_in_one_line(name):
    agents = ("a",) if mlrl_learners.registry[name].max_agents == 1 else ("a", "b")
    for old, (group, field) in places(name).items():
        if old == "group_size":
            continue
        with pytest.raises(ConfigError) as error:
            mlrl_learners.make(name, agents=agents, model="no/such-model", **{old: 0.123})
        assert str(error.value).startswith(f"{old} is now {group}.{field}: ")
        assert "\n" not in str(error.value)


def test_the_place_of_every_old_name_is_a_field():
    named = {place for each in PLACES.values() for place in each}
    fields = {
        f"{group.name}.{option.name}"
        for name in OURS
        for group in groups_of(name).values()
        for option in group.options
        if group.name
    }
    assert named <= fields


def test_group_size_is_accepted_beside_other_fields_of_its_group():
    config_type, _ = LEARNER_CONFIGS["magrpo"]
    config = build_config(config_type, {"group_size": 3, "group": {"joint_mode": "cross"}})
    assert config.group == GroupOptions(3, "cross")


def test_group_size_given_twice_is_refused():
    config_type, _ = LEARNER_CONFIGS["magrpo"]
    with pytest.raises(ConfigError, match=r"group_size is group\.size: leave one of them out"):
        build_config(config_type, {"group_size": 3, "group": {"size": 3}})


def test_a_group_may_be_an_instance():
    config_type, _ = LEARNER_CONFIGS["magrpo"]
    assert build_config(config_type, {"loss": LossOptions("grpo")}).loss.kind == "grpo"


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"loss": LossOptions("grppo")}, r"loss\.kind must be grpo or .*, got 'grppo'"),
        ({"loss": LossOptions(surrogate="cisp")}, r"loss\.surrogate must be clip or cispo"),
        ({"group": GroupOptions(2.5)}, r"group\.size must be an int, got 2\.5"),
        ({"group": GroupOptions(branching="greddy")}, r"group\.branching must be tree or"),
    ],
)
def test_the_values_of_an_instance_are_checked(group, message):
    with pytest.raises(ConfigError, match=message):
        build_config(LEARNER_CONFIGS["magrpo"][0], group)


def test_a_mapping_changes_the_defaults_of_the_learner_only_where_it_says_so():
    config_type, _ = LEARNER_CONFIGS["madpo"]
    assert build_config(config_type, {"group": {"joint_mode": "cross"}}).group == GroupOptions(
        80, "cross", "chain"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temprature": 1.0}, "unknown option 'temprature'; did you mean 'sampling.temperature'"),
        ({"optimizer": {"lrr": 1.0}}, "'optimizer.lrr'; did you mean 'optimizer.lr'"),
        ({"optimizer": {"top_k": 1}}, "'optimizer.top_k'; did you mean 'sampling.top_k'"),
        ({"optimizr": {"lr": 1.0}}, "unknown option 'optimizr'; did you mean 'optimizer"),
        ({"grop_size": 2}, "unknown option 'grop_size'; did you mean 'group.size'"),
    ],
)
def test_an_unknown_option_is_named_with_the_nearest_field(options, message):
    with pytest.raises(UnknownNameError, match=message):
        build_config(LEARNER_CONFIGS["magrpo"][0], options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": {"lr": "fast"}}, r"optimizer\.lr must be a number, got 'fast'"),
        ({"optimizer": {"lr": -1.0}}, r"optimizer\.lr must be above 0, got -1\.0"),
        ({"optimizer": 3}, "optimizer must be a mapping of some of lr, weight_decay, .* got 3"),
        ({"loss": "grpo"}, r"loss is now loss\.kind: write loss: \{kind: \.\.\.\}"),
    ],
)
def test_a_wrong_value_is_named_with_its_group(options, message):
    with pytest.raises(ConfigError, match=message):
        build_config(LEARNER_CONFIGS["magrpo"][0], options)


def test_the_configuration_of_a_stored_run_is_converted(tmp_path):
    path = tmp_path / "config.yaml"
    options = {"lr": 0.5, "loss": "dr_grpo", "group_size": 6, "system_prompts": {"a": "hi"}}
    path.write_text(json.dumps({"env": {"id": "x"}, "learner": {"options": options}}))
    assert load_stored_config(path).learner.options == {
        "optimizer": {"lr": 0.5},
        "loss": {"kind": "dr_grpo"},
        "group": {"size": 6},
        "team": {"system_prompts": {"a": "hi"}},
    }


def test_options_of_other_peoples_learners_are_left_alone():
    assert grouped("my_learner", {"lr": 1.0, "group_size": 3}) == {"lr": 1.0, "group_size": 3}


def test_list_shows_the_groups_of_a_learner(capsys):
    assert main(["list", "magrpo"]) == 0
    assert capsys.readouterr().out == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("name", OURS)
def test_list_shows_every_option_as_json(name, capsys):
    assert main(["list", name, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {group["name"] for group in shown["groups"]} == set(groups_of(name))

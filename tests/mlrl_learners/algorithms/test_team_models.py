import pytest

from mlrl_learners.algorithms.team_models import (
    TeamModels,
    TeamModelsConfig,
    assign_policies,
    describe_source,
    policy_sources,
)
from mlrl_learners.algorithms.team_options import TeamOptions
from mlrl_learners.config.groups import build_config
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.policies import tiny_model

AGENTS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"a": "a", "b": "b", "c": "c"}),
        ({"team": {"share_weights": True}}, dict.fromkeys(AGENTS, "shared")),
        ({"team": {"policies": {"a": "x", "b": "x", "c": "y"}}}, {"a": "x", "b": "x", "c": "y"}),
        ({"team": {"policies": {"a": "x", "c": "x"}}}, {"a": "x", "b": "b", "c": "x"}),
        ({"team": {"policies": {"a": "b"}}}, {"a": "b", "b": "b", "c": "c"}),  # a plays with b's
        ({"team": {"frozen": ["b"]}}, {"a": "a", "b": "b", "c": "c"}),
    ],
)
def test_each_agent_has_a_policy(options, expected):
    assert assign_policies(AGENTS, build_config(TeamModelsConfig, options).team) == expected


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"team": {"policies": {"aa": "x"}}}, UnknownNameError, "unknown agent 'aa'"),
        ({"team": {"frozen": ["d"]}}, UnknownNameError, "unknown agent 'd'"),
        ({"team": {"frozen": ["c", "a", "b"]}}, ConfigError, "frozen names every agent, a, b, c"),
        (
            {"team": {"share_weights": True, "policies": {"a": "x"}}},
            ConfigError,
            "leave policies out",
        ),
        ({"team": {"policies": {"a": "../x"}}}, ConfigError, r"'\.\./x' for agent 'a'"),
        ({"team": {"policies": {"a": ""}}}, ConfigError, "'' for agent 'a'"),
        ({"team": {"policies": {"a": "critics"}}}, ConfigError, "'critics' for agent 'a'"),
        (
            {"team": {"policies": {"a": "reward_model"}}},
            ConfigError,
            "'reward_model' for agent 'a'",
        ),
        ({"team": {"policies": {"b": "team.json"}}}, ConfigError, "'team.json' for agent 'b'"),
        (
            {"team": {"policies": {"b": "offline.json"}}},
            ConfigError,
            "'offline.json' for agent 'b'",
        ),
        ({"team": {"policies": {"b": "marlhf.json"}}}, ConfigError, "'marlhf.json' for agent 'b'"),
        (
            {"team": {"policies": {"b": "generator.pt"}}},
            ConfigError,
            "'generator.pt' for agent 'b'",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        assign_policies(AGENTS, build_config(TeamModelsConfig, options).team)


def test_nobody_is_no_team():
    with pytest.raises(ConfigError, match="at least one agent"):
        assign_policies((), TeamOptions())


def test_policies_start_from_the_models_of_their_agents():
    policy_of = {"a": "x", "b": "x", "c": "c"}
    assert policy_sources(policy_of, "m") == {"x": "m", "c": "m"}
    models = {"a": "m", "b": "m", "c": "n"}
    assert policy_sources(policy_of, models) == {"x": "m", "c": "n"}


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ({"a": "m", "b": "n"}, ConfigError, "the policy 'x' need one model, got 'm' and 'n'"),
        ({"a": "m"}, ConfigError, r"model names none for the agents \['b'\]"),
        ({"a": "m", "b": "m", "bb": "m"}, UnknownNameError, "unknown agent 'bb'"),
    ],
)
def test_models_that_do_not_fit_the_policies_are_refused(models, error, message):
    with pytest.raises(error, match=message):
        policy_sources({"a": "x", "b": "x"}, models)


def test_adapters_on_one_source_share_its_weights_and_those_on_another_do_not():
    weights = TeamModels(build_config(TeamModelsConfig, {"lora": {"rank": 2}}), seed=0)
    one, two = (weights.trained(name, "tiny-random") for name in ("one", "two"))
    other = weights.trained("other", "tiny-random-gpt2")
    assert one.model is two.model is weights.frozen("tiny-random").model
    assert other.model is not one.model


def test_without_adapters_every_policy_has_a_model_and_the_frozen_ones_share_one():
    weights = TeamModels(TeamModelsConfig(), seed=0)
    one, two = (weights.trained(name, "tiny-random") for name in ("one", "two"))
    assert one.model is not two.model
    assert weights.frozen("tiny-random") is weights.frozen("tiny-random")
    assert all(weight.requires_grad for weight in one.model.parameters())
    assert weights.frozen("tiny-random").parameters() == []


def test_models_in_memory_are_told_apart_by_object_and_left_alone():
    first, second = tiny_model(0), tiny_model(1)
    weights = TeamModels(build_config(TeamModelsConfig, {"lora": {"rank": 2}}), seed=0)
    policies = [weights.trained(str(n), source) for n, source in enumerate((first, second, first))]
    assert policies[0].model is policies[2].model
    assert policies[0].model is not policies[1].model
    assert all(weight.requires_grad for weight in first[0].parameters())
    assert describe_source(first) == "a LlamaForCausalLM in memory"


@pytest.mark.parametrize("agent", ["../a", "critics", "team.json", ""])
def test_an_agents_own_name_is_held_to_the_same_rule(agent):
    with pytest.raises(ConfigError, match="policies can give it another"):
        assign_policies([agent, "b"], TeamOptions())
    assert assign_policies([agent, "b"], TeamOptions(share_weights=True))[agent] == "shared"
    assert assign_policies([agent, "b"], TeamOptions(policies={agent: "x"}))[agent] == "x"

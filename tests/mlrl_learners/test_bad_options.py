"""Options that another option makes meaningless are refused before a model is looked for."""

import math

import pytest

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import load_config
from mlrl_learners.errors import ConfigError

GROUPS = ["magrpo", "mareinforce", "marloo", "maremax"]
CRITICS = ["ippo", "mappo", "iac", "maac"]
POLICY_GRADIENTS = [*GROUPS, *CRITICS]
FILE = {"preferences": {"episodes": "some.jsonl"}}


def refused(name, message, **options):
    """The option's error comes first, though there is no such model."""
    with pytest.raises(ConfigError, match=message) as error:
        mlrl_learners.make(name, agents=("a", "b"), model="no/such-model", **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": {"kl_estimator": "k1"}}, "kl_estimator k1 means nothing with kl_coef 0"),
        ({"penalty": {"kl_in": "reward"}}, "kl_in reward means nothing with kl_coef 0"),
        ({"credit": {"kind": "difference"}, "group": {"size": 1}}, r"group\.size of at least 2"),
        (
            {"penalty": {"overlong_penalty": 1.0}},
            "overlong_penalty must be above 0 for overlong penalize",
        ),
        ({"lora": {"alpha": 16}}, r"lora\.alpha 16 means nothing with rank 0"),
        ({"lora": {"targets": ["q_proj"]}}, r"lora\.targets .* need a rank above 0"),
        ({"team": {"share_weights": True, "policies": {"a": "x"}}}, "leave policies out"),
    ],
)
def test_of_every_policy_gradient_method(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("magrpo", "optimizer.lr"),
        ("magrpo", "sampling.temperature"),
        ("magrpo", "penalty.kl_coef"),
        ("magrpo", "penalty.overlong_penalty"),
        ("magrpo", "baseline.std_epsilon"),
        ("ippo", "critic.value_coef"),
        ("ippo", "critic.lr"),
        ("marlhf", "reward_model.lr"),
        ("magrpo", "optimizer.weight_decay"),
        ("madpo", "loss.beta"),
        ("madpo", "loss.sft_coef"),
        ("madpo", "loss.target_margin"),
    ],
)
def test_numbers_that_no_gradient_survives(name, place, value):
    group, _, option = place.partition(".")
    refused(name, rf"{group}\.{option} must be .*, got {value}", **{group: {option: value}})


@pytest.mark.parametrize("weight", [math.inf, math.nan, "much"])
def test_weights_of_reward_parts_that_are_no_finite_numbers(weight):
    message = r"baseline\.components must (have finite weights|be a mapping of names to floats)"
    refused("magrpo", message, baseline={"components": {"tests": weight}})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("magrpo", {"penalty": {"overlong_buffer": -1}}, r"penalty\.overlong_buffer must be .* -1"),
        ("magrpo", {"sampler": {"weights_folder": "w"}}, "weights_folder w means nothing with an"),
        (
            "magrpo",
            {"baseline": {"components": {1: 2.0}}},
            r"baseline\.components must be a mapping",
        ),
        ("magrpo", {"team": {"chat_template_kwargs": {1: 2}}}, "must be a mapping, got {1: 2}"),
        ("ippo", {"critic": {"model": ["tiny-random"]}}, r"critic\.model must be .*, got \['tiny"),
        ("sft", {"examples": {"filter_reward": math.nan}}, "filter_reward must be a number, got n"),
    ],
)
def test_values_that_mean_nothing(name, options, message):
    refused(name, message, **options)


def test_agents_of_one_name():
    with pytest.raises(ConfigError, match="different names, got a, a"):
        mlrl_learners.make("magrpo", agents=("a", "a"), model="no/such-model")


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_added_to_a_deviation_that_nothing_is_divided_by(name):
    refused(
        name,
        "std_epsilon 1e-06 means nothing with normalize_std false",
        baseline={"std_epsilon": 1e-6},
    )


@pytest.mark.parametrize("kind", ["none", "role_ema"])
def test_a_deviation_that_divides_returns_without_a_baseline_of_their_group(kind):
    refused(
        "magrpo",
        rf"normalize_std .* got baseline\.kind {kind}: set baseline\.normalize_batch",
        baseline={"kind": kind, "normalize_std": True},
    )
    if kind == "none":
        refused("mareinforce", "set baseline.normalize_batch", baseline={"normalize_std": True})


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"critic": {"value_coef": 0.0, "lr": 1e-4}},
            r"critic\.lr .* means nothing with value_coef 0",
        ),
        (
            {"critic": {"value_coef": 0.0, "model": "x"}},
            r"critic\.model x means nothing with value_coef",
        ),
        ({"critic": {"kind": "value_head", "model": "x"}}, r"leave critic\.model out"),
        (
            {"critic": {"kind": "value_head"}, "team": {"conversation": True}},
            r"value_head .* team\.conversation .* set critic\.kind separate or central",
        ),
        (
            {"credit": {"kind": "leave_one_out"}, "group": {"size": 1}},
            r"at least 2 for credit\.kind leave_one_out",
        ),
    ],
)
def test_of_every_method_with_a_critic(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "madpo",
            merge_options(FILE, {"group": {"joint_mode": "cross"}}),
            "joint_mode cross means nothing with preferences",
        ),
        (
            "madpo",
            merge_options(FILE, {"group": {"branching": "tree"}}),
            "branching tree means nothing with preferences",
        ),
        (
            "madpo",
            merge_options(FILE, {"preferences": {"gamma": 0.5}}),
            "gamma 0.5 means nothing with preferences",
        ),
        (
            "marlhf",
            merge_options(FILE, {"preferences": {"gamma": 0.5}}),
            "gamma 0.5 means nothing with preferences",
        ),
        (
            "marlhf",
            {"preferences": {"held_out": 0.3}},
            "held_out 0.3 means nothing with no episodes",
        ),
        (
            "marlhf",
            {"method": "ippo", "advantage": {"gae_lambda": 0.5}},
            "gae_lambda 0.5 means nothing for marlhf",
        ),
        ("marlhf", {"method": "ippo", "group": {"size": 1}}, "must be at least 2 where pairs"),
        ("marlhf", {"penalty": {"kl_in": "reward"}}, "kl_in reward means nothing with kl_coef 0"),
        ("sft", {"examples": {"batch_size": 3}}, "batch_size 3 means nothing with no episodes"),
    ],
)
def test_of_a_method_that_learns_from_a_file_or_not(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize("name", ["sft", "madpo"])
def test_a_preset_that_plays_may_be_given_a_file(name):
    group = {"sft": "examples", "madpo": "preferences"}[name]
    options = load_config(name, [f"--learner.{group}.episodes", "good.jsonl"]).learner.options
    with pytest.raises(mlrl_learners.errors.ModelNotFoundError):
        mlrl_learners.make(name, agents=("a", "b"), model="no/such-model", **options)

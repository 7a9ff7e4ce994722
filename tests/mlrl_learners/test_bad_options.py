"""Options that another option makes meaningless are refused before a model is looked for."""

import pytest

import mlrl_learners
from mlrl_learners.config.run import load_config
from mlrl_learners.errors import ConfigError

GROUPS = ["magrpo", "mareinforce", "marloo", "maremax"]
CRITICS = ["ippo", "mappo", "iac", "maac"]
POLICY_GRADIENTS = [*GROUPS, *CRITICS]
FILE = {"episodes": "some.jsonl"}


def refused(name, message, **options):
    """The option's error comes first, though there is no such model."""
    with pytest.raises(ConfigError, match=message) as error:
        mlrl_learners.make(name, agents=("a", "b"), model="no/such-model", **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", POLICY_GRADIENTS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kl_estimator": "k1"}, "kl_estimator k1 means nothing with kl_coef 0"),
        ({"kl_in": "reward"}, "kl_in reward means nothing with kl_coef 0"),
        ({"credit": "difference", "group_size": 1}, "group_size of at least 2"),
        ({"overlong_penalty": 1.0}, "overlong_penalty must be above 0 for overlong penalize"),
        ({"lora_alpha": 16}, "lora_alpha 16 means nothing with lora_rank 0"),
        ({"lora_targets": ["q_proj"]}, "lora_targets .* need a lora_rank above 0"),
        ({"share_weights": True, "policies": {"a": "x"}}, "leave policies out"),
    ],
)
def test_of_every_policy_gradient_method(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_added_to_a_deviation_that_nothing_is_divided_by(name):
    refused(name, "std_epsilon 1e-06 means nothing with normalize_std false", std_epsilon=1e-6)


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value_coef": 0.0, "critic_lr": 1e-4}, "critic_lr .* means nothing with value_coef 0"),
        ({"value_coef": 0.0, "critic_model": "x"}, "critic_model x means nothing with value_coef"),
        ({"critic": "value_head", "critic_model": "x"}, "leave critic_model out"),
        ({"credit": "leave_one_out", "group_size": 1}, "at least 2 for credit leave_one_out"),
    ],
)
def test_of_every_method_with_a_critic(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("madpo", {**FILE, "joint_mode": "cross"}, "joint_mode cross means nothing with episodes"),
        ("madpo", {**FILE, "branching": "tree"}, "branching tree means nothing with episodes"),
        ("madpo", {**FILE, "gamma": 0.5}, "gamma 0.5 means nothing with episodes"),
        ("marlhf", {**FILE, "gamma": 0.5}, "gamma 0.5 means nothing with episodes"),
        ("marlhf", {"held_out": 0.3}, "held_out 0.3 means nothing with no episodes"),
        (
            "marlhf",
            {"method": "ippo", "gae_lambda": 0.5},
            "gae_lambda 0.5 means nothing for marlhf",
        ),
        ("marlhf", {"method": "ippo", "group_size": 1}, "must be at least 2 where pairs"),
        ("marlhf", {"kl_in": "reward"}, "kl_in reward means nothing with kl_coef 0"),
        ("sft", {"batch_size": 3}, "batch_size 3 means nothing with no episodes"),
    ],
)
def test_of_a_method_that_learns_from_a_file_or_not(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize("name", ["sft", "madpo"])
def test_a_preset_that_plays_may_be_given_a_file(name):
    options = load_config(name, ["--learner.episodes", "good.jsonl"]).learner.options
    with pytest.raises(mlrl_learners.errors.ModelNotFoundError):
        mlrl_learners.make(name, agents=("a", "b"), model="no/such-model", **options)

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from mlrl_learners.config.options import check_options
from mlrl_learners.errors import ConfigError, UnknownNameError


@dataclass
class Config:
    group_size: int = 4
    lr: float = 1e-5
    shared: bool = False
    loss: Literal["grpo", "gspo"] = "grpo"
    limit: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    stops: tuple[str, ...] = ()
    name: str = ""


def test_right_options_pass():
    check_options(
        {"group_size": 8, "lr": 1, "shared": True, "loss": "gspo", "limit": None, "prompts": {}}
        | {"stops": ["a"], "name": "x"},
        Config,
    )


def test_an_unknown_option_is_named_with_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"option 'group_sise'.*'group_size'"):
        check_options({"group_sise": 8}, Config)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("group_size", "eight", "an int"),
        ("group_size", 8.0, "an int"),
        ("group_size", True, "an int"),
        ("lr", "fast", "a number"),
        ("shared", 1, "true or false"),
        ("loss", "gpo", "grpo or gspo"),
        ("limit", "x", "an int or null"),
        ("prompts", ["x"], "a mapping"),
        ("prompts", {1: "x"}, "a mapping"),
        ("stops", "x", "a list"),
        ("name", 3, "text"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_what_is_right(option, value, expected):
    with pytest.raises(ConfigError, match=f"{option} must be {expected}, got"):
        check_options({option: value}, Config)

"""Tests of the validation of programs, limits and arguments."""

import pickle

import pytest

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.sandbox import Limits, Program, Sandbox, run

CHECK = "def check(candidate):\n    assert candidate() == 1\n"


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "3", None])
@pytest.mark.parametrize("name", ["wall_seconds", "memory_mib", "output_kib", "test_seconds"])
def test_a_limit_that_is_not_positive_is_named(name, value):
    with pytest.raises(InvalidArgumentError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"style": "pytest"}, "pytest"),
        ({"source": b"x"}, "bytes"),
        ({"tests": "def check(:"}, "do not parse"),
        ({"tests": "assert True"}, "check"),
        ({"tests": "x = 1", "style": "unittest"}, "TestCase"),
        ({"tests": "\0"}, "do not parse"),
        ({"helpers": "def"}, "helpers"),
        ({"entry_points": ()}, "entry_points"),
        ({"entry_points": ("not a name",)}, "not a name"),
        ({"entry_points": ("class",)}, "class"),
        ({"assurance": "total"}, "total"),
        ({"dunders": ("__class__",)}, "__class__"),
        ({"limits": {"test_seconds": 1}}, "limits must be Limits"),
    ],
)
def test_an_invalid_program_raises_invalid_argument_error(changes, message):
    fields = {"source": "", "tests": CHECK, "style": "check", "entry_points": ("f",)}
    with pytest.raises(InvalidArgumentError, match=message):
        Program(**{**fields, **changes})


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2"])
def test_workers_must_be_a_positive_integer(workers):
    with pytest.raises(InvalidArgumentError, match="workers"):
        Sandbox(workers=workers)


def test_an_unknown_tier_is_refused():
    with pytest.raises(InvalidArgumentError, match="tier"):
        Sandbox(minimum_tier="S")


def test_programs_and_limits_are_picklable_and_hashable():
    program = Program("x", CHECK, "check", ["f"])
    assert pickle.loads(pickle.dumps(program)) == program
    assert len({program, Program("x", CHECK, "check", ("f",))}) == 1
    assert pickle.loads(pickle.dumps(Limits())) == Limits()


def test_run_needs_tests_that_parse_and_use_the_source():
    with pytest.raises(InvalidArgumentError, match="do not parse"):
        run("def f(): pass", "assert (")
    with pytest.raises(InvalidArgumentError, match="no name"):
        run("def f(): pass", "assert 1 + 1 == len([1, 2])")

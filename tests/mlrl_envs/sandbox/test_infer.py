"""Tests of the inference of style, entry points and operators."""

import pytest

from mlrl_envs.sandbox import infer_dunders, infer_entry_points, infer_style


@pytest.mark.parametrize(
    ("tests", "style"),
    [
        ("def check(candidate):\n    assert candidate(1)", "check"),
        ("assert f(1) == 1", "asserts"),
        ("import unittest\nclass T(unittest.TestCase):\n    pass", "unittest"),
    ],
)
def test_infer_style(tests, style):
    assert infer_style(tests) == style


def test_entry_points_are_used_by_the_tests_and_defined_by_the_source():
    source = "import math\nclass Node: pass\ndef unused(): pass\ndef f(x): return x\n"
    assert infer_entry_points(source, "root = Node()\nassert f(root)", "asserts") == ("Node", "f")


def test_check_takes_the_last_function():
    source = "def helper(): pass\ndef f(): pass\n"
    tests = "def check(candidate):\n    assert candidate()"
    assert infer_entry_points(source, tests, "check") == ("f",)


def test_a_source_that_does_not_parse_still_has_an_entry_point():
    assert infer_entry_points("def f(", "assert f(1) == 1", "asserts") == ("f",)


def test_dunders_are_those_that_the_reference_class_defines():
    reference = "class Box:\n    def __init__(self): pass\n    def __len__(self): return 1\n"
    assert infer_dunders(reference, ("Box",)) == ("__len__",)
    assert infer_dunders(reference, ("Other",)) == ()


def test_a_builtin_is_an_entry_point_only_if_the_tests_use_no_other_name():
    own_sum = "def sum(a, b):\n    return a"
    assert infer_entry_points(own_sum, "assert sum(1, 2) == 1", "asserts") == ("sum",)
    cheat = "def len(x):\n    return 0\ndef f(x):\n    return x"
    assert infer_entry_points(cheat, "assert len(f([])) == 0", "asserts") == ("f",)

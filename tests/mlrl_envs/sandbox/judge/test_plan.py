"""Tests of the compilation of tests and of the expected number of records."""

import pytest

from mlrl_envs.sandbox.judge.plan import make_plan

CHECK = "def check(candidate):\n"


def expected(body):
    plan = make_plan(CHECK + "".join(f"    {line}\n" for line in body.splitlines()), "", "check")
    return None if plan.expected is None else [plan.names[place] for place in plan.expected]


def test_assertions_are_named_by_their_source():
    assert expected("assert candidate(1) == 2, 'msg'\nx = 3\nassert candidate( x )") == [
        "candidate(1) == 2",
        "candidate( x )",
    ]


def test_constant_assertions_are_not_counted():
    assert expected("assert True, 'prints'\nassert candidate()\nassert 1") == ["candidate()"]


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("range(3)", 3),
        ("range(1, 10, 4)", 3),
        ("range(-1)", 0),
        ("[1, 2]", 2),
        ("(7,)", 1),
        ("range(n)", None),
        ("[*xs]", None),
        ("xs", None),
        ("range(1, 2, 3, 4)", None),
    ],
)
def test_loops_over_literals_are_counted(loop, rounds):
    names = expected(f"for i in {loop}:\n    assert candidate(i)")
    assert names == (None if rounds is None else ["candidate(i)"] * rounds)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(3):\n    if i:\n        break\n    assert candidate(i)",
        "while candidate():\n    assert candidate()",
        "if candidate():\n    assert candidate()",
        "def inner():\n    assert candidate()\ninner()",
        "if candidate():\n    return\nassert candidate()",
    ],
)
def test_counts_unknown_before_the_run_are_none(body):
    assert expected(body) is None


def test_assertions_after_a_return_are_not_expected():
    assert expected("assert candidate(1)\nreturn\nassert candidate(2)") == ["candidate(1)"]


def test_a_try_statement_gives_one_record():
    names = expected(
        "try:\n    assert candidate(1)\n    assert candidate(2)\nexcept KeyError: pass"
    )
    assert names is not None
    assert len(names) == 1


def test_helpers_keep_their_future_imports():
    plan = make_plan(
        "assert f(sys.maxsize)", "from __future__ import annotations\nx = 1", "asserts"
    )
    assert plan.names == ("f(sys.maxsize)",)

"""Tests of the contents of an outcome."""

import pytest

from mlrl_envs.sandbox import Limits, Program, Sandbox


def check(source, *assertions, **options):
    body = "\n".join(f"    {line}" for block in assertions for line in block.splitlines())
    return Program(source, f"def check(candidate):\n{body}\n", "check", ("f",), **options)


def flags(outcome):
    return [record.passed for record in outcome.tests]


def test_each_assertion_gives_a_record_and_a_failure_does_not_stop_the_next(sandbox):
    outcome = sandbox.run(
        check(
            "def f(x):\n    return x * x",
            "assert candidate(2) == 4\nassert candidate(3) == 8\nassert candidate(1) == 1",
        )
    )
    assert (outcome.status, outcome.passed, outcome.total) == ("failed", 2, 3)
    assert [record.name for record in outcome.tests] == [
        "candidate(2) == 4",
        "candidate(3) == 8",
        "candidate(1) == 1",
    ]
    assert flags(outcome) == [True, False, True]
    assert [record.error for record in outcome.tests] == ["", "false; the last value was 9", ""]
    assert outcome.assurance == "split"
    assert outcome.seconds > 0
    assert outcome.memory_mib > 1


def test_error_texts_describe_the_program_and_not_the_expected_value(sandbox):
    source = "def f(x):\n    assert x, 'own message'\n    return x + 1"
    tests = "assert candidate(0) == 7, 'seven'\nassert candidate(1) == 7, 'seven'"
    outcome = sandbox.run(check(source, tests))
    assert [record.error for record in outcome.tests] == [
        "AssertionError: own message",
        "false; the last value was 2",
    ]


def test_each_iteration_of_a_loop_gives_a_record(sandbox):
    outcome = sandbox.run(
        check("def f(x):\n    return x", "for i in range(4):\n    assert candidate(i) != 2")
    )
    assert flags(outcome) == [True, True, False, True]


def test_an_exception_in_one_assertion_does_not_stop_the_others(sandbox):
    outcome = sandbox.run(
        check("def f(x):\n    return 1 / x", "assert candidate(0) == 0\nassert candidate(1) == 1")
    )
    assert flags(outcome) == [False, True]
    assert outcome.tests[0].error == "ZeroDivisionError: division by zero"


def test_tests_that_break_off_never_pass(sandbox):
    source = "def f(x):\n    if x: raise ValueError\n    return x"
    outcome = sandbox.run(check(source, "assert candidate(0) == 0\ncandidate(1)"))
    assert (outcome.status, outcome.passed, outcome.total) == ("failed", 1, 2)
    assert outcome.tests[1].error == "ValueError"
    outcome = sandbox.run(
        check(source, "for i in range(2):\n    y = candidate(i)\n    assert y == i")
    )
    assert (outcome.status, outcome.passed, outcome.total) == ("failed", 1, 2)
    assert not outcome.tests[1].passed


def test_tests_without_assertions_never_pass(sandbox):
    assert sandbox.run(check("def f(): pass", "candidate()\nassert True")).status == "failed"


def test_a_timeout_keeps_earlier_passes():
    with Sandbox(workers=1, limits=Limits(test_seconds=0.3)) as sandbox:
        source = "def f(x):\n    while x == 2: pass\n    return x"
        outcome = sandbox.run(check(source, "for i in range(4):\n    assert candidate(i) == i"))
    assert (outcome.status, outcome.passed, outcome.total) == ("timeout", 2, 4)
    assert flags(outcome) == [True, True, False, False]
    assert outcome.tests[2].error == "no answer within 0.3 s"
    assert outcome.cpu_seconds < 2


@pytest.mark.parametrize(
    ("limits", "source", "status"),
    [
        (Limits(load_seconds=0.3), "while True: pass", "timeout"),
        (Limits(test_seconds=9, cpu_seconds=1), "def f():\n    while True: pass", "cpu_limit"),
        (Limits(wall_seconds=0.4), "import time\ndef f():\n    time.sleep(9)", "timeout"),
        (Limits(memory_mib=20), "def f():\n    return len('x' * (1 << 26))", "memory"),
    ],
)
def test_each_limit_has_its_status(limits, source, status):
    with Sandbox(workers=1, limits=limits) as sandbox:
        assert sandbox.run(check(source, "assert candidate() == 1")).status == status


def test_output_is_kept_even_if_the_program_dies(sandbox):
    source = "import os\ndef f():\n    print('h\\u00e9llo\\x1b[31m')\n    os._exit(0)"
    outcome = sandbox.run(check(source, "assert candidate() == 1"))
    assert outcome.status == "died"
    assert outcome.stdout == "h\u00e9llo[31m\n"


def test_output_is_limited():
    with Sandbox(workers=1, limits=Limits(output_kib=1)) as sandbox:
        outcome = sandbox.run(
            check("def f():\n    print('x' * 5000)\n    return 1", "assert candidate() == 1")
        )
    assert outcome.status == "passed"
    assert outcome.stdout == "x" * 1024


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def f(:", "SyntaxError"),
        ("raise KeyError('no')", "KeyError: 'no'"),
        ("def g(): pass", "NameError: the source defines no 'f'"),
        ("import sys\nsys.exit()", "SystemExit raised"),
    ],
)
def test_a_load_error_names_its_cause(source, error, sandbox):
    outcome = sandbox.run(check(source, "assert candidate() == 1"))
    assert outcome.status == "load_error"
    assert outcome.error.startswith(error)
    assert flags(outcome) == [False]


def test_error_texts_are_deterministic(sandbox):
    source = "def f():\n    return [{'b', 'a', 'c'}, object.__repr__, (lambda: 0)]"
    program = check(source, "assert candidate() == 1\nassert candidate(1) == 1")
    first, second = sandbox.run(program), sandbox.run(program)
    assert first.tests == second.tests
    assert "0x7" not in repr(first)


def test_limits_of_a_program_override_those_of_the_sandbox():
    sleeper = "import time\ndef f():\n    time.sleep(0.6)\n    return 1"
    hungry = "def f():\n    return len('x' * (1 << 27)) > 0"
    noisy = "def f():\n    print('x' * 5000)\n    return 1"

    def programs(limits):
        sources = (sleeper, hungry, noisy)
        return [check(source, "assert candidate() == 1", limits=limits) for source in sources]

    tight = Limits(test_seconds=0.2, memory_mib=64, output_kib=1)
    with Sandbox(workers=1) as sandbox:
        outcomes = sandbox.run_many([*programs(tight), *programs(None)])
    statuses = [outcome.status for outcome in outcomes]
    assert statuses == ["timeout", "memory", "passed", "passed", "passed", "passed"]
    assert [len(outcome.stdout) for outcome in outcomes[2::3]] == [1024, 5001]


def test_random_numbers_are_the_same_in_every_run(sandbox):
    source = "import random\ndef f(): return random.random()"
    tests = "import random\nassert candidate() == random.random()"
    shown = {sandbox.run(check(source, tests)).tests[0].error for _ in range(3)}
    assert len(shown) == 1, "the candidate's numbers differ, or the judge's are the same"
    assert shown.pop().startswith("false; the last value was 0.")

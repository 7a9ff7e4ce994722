"""Counts of passed assertions on constructed records."""

from dataclasses import replace

import pytest

from mlrl_envs.rewards.coding.runs import (
    AGAIN,
    HURRIED,
    run_all,
    run_sources,
    subtract_constants,
)
from mlrl_envs.sandbox import Outcome, TestRecord
from mlrl_envs.tasks import CodeTask
from mlrl_envs.types import Attempt

TASK = CodeTask(
    task_id="test/0",
    prompt="",
    entry_point="f",
    prelude="class Node:\n    pass",
    helper_names=("Node",),
    public_tests=("assert f('a') == 1",),
    hidden_tests="assert f('a') == 1\nassert f('b') == 2\nassert f('c') == 3",
    num_hidden_tests=3,
    setup="root = Node()",
    shared_names=("Node",),
)
MAIN = "def f(x):\n    return x"


class Fixed:
    """Answers every program with the same records."""

    def __init__(self, *records, status="failed"):
        self.records, self.status, self.programs = records, status, []

    def run_many(self, programs):
        self.programs += programs
        records = tuple(TestRecord(*record) for record in self.records)
        return [Outcome(self.status, 0, len(records), records) for _ in programs]


def _run(sandbox, task=TASK):
    (run,) = run_all([Attempt(task, (), {"main": MAIN})], [{"main": "f"}], sandbox)
    return run


SHOWN = ("f('a') == 1", True)


@pytest.mark.parametrize(
    ("records", "rate", "unseen", "solved"),
    [
        ([("f('a') == 1", True), ("f('b') == 2", True), ("f('c') == 3", True)], 1.0, (2, 2), True),
        (
            [("f('a') == 1", True), ("f('b') == 2", True), ("f('c') == 3", False)],
            2 / 3,
            (1, 2),
            False,
        ),
        (
            [("f('a') == 1", True), ("f('b') == 2", False), ("f('c') == 3", False)],
            1 / 3,
            (0, 2),
            False,
        ),
        ([('candidate("a")==1', True), ("f('b') == 2", False)], 1 / 3, (0, 2), False),
        ([("f('a') == 1", True)] * 3, 1.0, (3, 3), True),
        ([("f('a') == 1", False), ("f('b') == 2", True)], 1 / 3, (1, 2), False),
        ([], 0.0, (0, 3), False),
    ],
)
def test_only_assertions_that_were_not_shown_are_earned(records, rate, unseen, solved):
    run = _run(Fixed(SHOWN, *records))
    assert (run.rate, run.unseen, run.solved) == (rate, unseen, solved)
    assert run.earned_rate == pytest.approx(unseen[0] / unseen[1])


def test_what_a_constant_passes_is_subtracted():
    run = _run(Fixed(SHOWN, ("f('b') == 2", True), ("f('c') == 3", False)))
    sandbox = Fixed(SHOWN, ("f('b') == 2", True), ("f('c') == 3", False))
    (lower,) = subtract_constants([TASK], [run], sandbox)
    assert (lower.free, lower.earned_rate) == (1, 0.0)
    returned = [program.source.rpartition("return ")[2].strip() for program in sandbox.programs]
    assert returned == ["True", "False", "0", "[]", "1"]


def test_constants_run_only_for_programs_that_pass_something():
    sandbox = Fixed(SHOWN)
    run = _run(sandbox)
    sandbox.programs.clear()
    assert subtract_constants([TASK], [run], sandbox) == [run]
    assert sandbox.programs == []


def test_first_records_are_the_public_tests():
    run = _run(Fixed(("f('a') == 1", False, "false"), *[("f('b') == 2", True)] * 3))
    assert [(result.test, result.passed) for result in run.public] == [
        (TASK.public_tests[0], False)
    ]
    assert run.solved


def test_setup_runs_before_the_tests_and_shared_classes_come_from_the_program():
    sandbox = Fixed(SHOWN)
    _run(sandbox)
    (program,) = sandbox.programs
    assert program.tests.split("\n")[:2] == ["root = Node()", "assert f('a') == 1"]
    assert program.entry_points == ("f", "Node")
    assert "class Node" in program.source


def test_programs_that_are_run_again_count_unseen_assertions_and_all():
    sandbox = Fixed(SHOWN, ("f('b') == 2", True))
    assert run_sources([(TASK, MAIN, AGAIN)], sandbox) == [(1, 2)]
    assert run_sources([], sandbox) == []


def test_limits_are_the_sandboxs_the_tasks_or_short_when_run_again():
    sandbox = Fixed(("f('b') == 2", True))
    slow = replace(TASK, test_seconds=20.0)
    _run(sandbox)
    _run(sandbox, slow)
    run_sources([(TASK, MAIN, AGAIN), (slow, MAIN, AGAIN), (TASK, MAIN, HURRIED)], sandbox)
    usual, patient, again, patient_again, hurried = [program.limits for program in sandbox.programs]
    assert usual is None
    assert (patient.test_seconds, patient.wall_seconds, patient.cpu_seconds) == (20.0, 30.0, 30.0)
    assert (again.test_seconds, again.wall_seconds) == (1.0, 3.0)
    assert patient_again == patient
    assert (hurried.test_seconds, hurried.wall_seconds) == (0.5, 1.5)


@pytest.mark.parametrize(
    ("error", "erred"),
    [
        ("false", False),
        ("false; the last value was 3", False),
        ("TypeError: no", True),
        ("not reached; the program died", True),
    ],
)
def test_a_wrong_value_is_no_error(error, erred):
    assert _run(Fixed(SHOWN, ("f('b') == 2", False, error))).erred is erred


def test_a_program_that_does_not_load_has_erred():
    assert _run(Fixed(SHOWN, ("f('b') == 2", True), status="load_error")).erred

"""Failures of the infrastructure: retried, then raised, and never a verdict."""

import pytest

from mlrl_envs.errors import InfraError, InvalidArgumentError, OverloadedError
from mlrl_envs.sandbox import Limits, Program, Sandbox
from mlrl_envs.sandbox.worker.handle import WorkerHandle

CHECK = "def check(candidate):\n    assert candidate(3) == 9\n"
RIGHT = Program("def f(x): return x * x", CHECK, "check", ("f",))


@pytest.fixture
def sandbox():
    with Sandbox(workers=1, cache=False) as sandbox:
        yield sandbox


def test_a_program_whose_workers_are_all_killed_gets_no_verdict(sandbox, monkeypatch):
    monkeypatch.setattr(
        WorkerHandle, "run", lambda worker, *_: (worker.process.kill(), worker._receive(9))[1]
    )
    with pytest.raises(InfraError, match=r"lost repeatedly: .*closed the connection"):
        sandbox.run(RIGHT)
    assert not sandbox._all


def test_a_worker_that_cannot_fork_is_replaced(sandbox, monkeypatch):
    answers, receive = [{"infra": "a process could not be forked"}], WorkerHandle._receive

    def receive_later(worker, seconds):
        fields = receive(worker, seconds)
        return answers.pop() if answers and "status" in fields else fields

    monkeypatch.setattr(WorkerHandle, "_receive", receive_later)
    assert sandbox.run(RIGHT).status == "passed"
    answers += [{"infra": "a process could not be forked"}] * 2
    with pytest.raises(InfraError, match=r"lost repeatedly: a process could not be forked"):
        sandbox.run(RIGHT)


def test_an_overloaded_machine_is_tried_again_before_it_is_an_error(sandbox, monkeypatch):
    calls, run = [], WorkerHandle.run

    def run_later(worker, *arguments):
        calls.append(worker)
        if len(calls) in (1, 3, 4):
            raise OverloadedError("busy")
        return run(worker, *arguments)

    monkeypatch.setattr(WorkerHandle, "run", run_later)
    assert sandbox.run(RIGHT).status == "passed"
    with pytest.raises(OverloadedError, match="busy"):
        sandbox.run(RIGHT)
    assert len(sandbox._all) == 1


def test_programs_cannot_reach_the_process_table_of_their_worker(sandbox):
    source = """
import os, stat
def f(x):
    found = []
    for number in range(64):
        try:
            found.append(stat.S_ISDIR(os.fstat(number).st_mode))
        except OSError:
            pass
    return 9 if not any(found) else found
"""
    assert sandbox.run(Program(source, CHECK, "check", ("f",))).status == "passed"


def test_a_stretch_below_one_is_refused():
    with pytest.raises(InvalidArgumentError, match="max_stretch must be at least 1"):
        Limits(max_stretch=0.5)

"""One sandbox in several threads, in forked children, and beside another sandbox."""

import os
import signal
import threading
import time

import pytest

from mlrl_envs.sandbox import Limits, Sandbox
from mlrl_envs.sandbox.worker.handle import WorkerHandle
from tests.mlrl_envs.sandbox.worker_processes import (
    RIGHT,
    SLOW,
    WRONG,
    descendants,
    eventually_gone,
    workers_of,
)


@pytest.fixture
def sandbox():
    with Sandbox(workers=1, cache=False) as sandbox:
        yield sandbox


def test_many_threads_share_one_sandbox():
    verdicts = {}

    def work(name):
        programs = [RIGHT, WRONG] if name % 2 else [WRONG, RIGHT]
        verdicts[name] = [shared.run(program).status for program in programs * 3]

    with Sandbox(workers=2, cache=False) as shared:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(workers_of(shared)) <= 2
    assert verdicts == {
        name: (["passed", "failed"] if name % 2 else ["failed", "passed"]) * 3 for name in range(6)
    }


def test_a_worker_outlives_the_thread_that_started_it(sandbox):
    thread = threading.Thread(target=sandbox.run, args=(RIGHT,))
    thread.start()
    thread.join()
    (worker,) = workers_of(sandbox)
    time.sleep(0.1)
    assert sandbox.run(RIGHT).status == "passed"
    assert workers_of(sandbox) == [worker]


def test_a_forked_child_starts_its_own_workers(sandbox):
    sandbox.run(RIGHT)
    before = workers_of(sandbox)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            right = sandbox.run(RIGHT).status == "passed" and workers_of(sandbox) != before
            sandbox.close()
            code = 0 if right else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sandbox.run(RIGHT).status == "passed"
    assert workers_of(sandbox) == before


def test_a_forked_child_does_not_keep_the_workers_of_a_dead_owner():
    sandbox = Sandbox(workers=1, cache=False)
    sandbox.run(RIGHT)
    below = descendants(workers_of(sandbox)[0])
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    sandbox.close()
    assert eventually_gone(below)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_two_sandboxes_with_different_limits_run_side_by_side():
    fast, slow = Limits(test_seconds=0.2), Limits(test_seconds=5)
    with Sandbox(1, fast, cache=False) as one, Sandbox(1, slow, cache=False) as other:
        assert one.run(SLOW).status == "timeout"
        assert other.run(SLOW).status == "passed"
        assert one.run(RIGHT).status == other.run(RIGHT).status == "passed"


def test_run_many_uses_all_workers_at_once(monkeypatch):
    together, run = threading.Barrier(2, timeout=60), WorkerHandle.run

    def run_together(worker, program, limits):
        together.wait()
        return run(worker, program, limits)

    monkeypatch.setattr(WorkerHandle, "run", run_together)
    with Sandbox(workers=2, cache=False) as sandbox:
        assert [o.status for o in sandbox.run_many([RIGHT] * 4)] == ["passed"] * 4

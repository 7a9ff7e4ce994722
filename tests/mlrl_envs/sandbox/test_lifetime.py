"""Tests of the life of workers: start, death, replacement, and end with their owner."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from mlrl_envs.errors import InfraError
from mlrl_envs.sandbox import Program, Sandbox
from tests.mlrl_envs.sandbox.worker_processes import (
    CHECK,
    RIGHT,
    SLOW,
    WRONG,
    alive,
    descendants,
    eventually_gone,
    workers_of,
)

OWNER = """
import sys, time
from mlrl_envs.sandbox import Program, Sandbox
check = "def check(candidate):\\n    assert candidate(3) == 9\\n"
source = "def f(x):\\n    while {loop}: pass\\n    return 9"
sandbox = Sandbox(workers=2)
sandbox.run_many([Program("def f(x): return 9", check, "check", ("f",))] * 4)
print("up", flush=True)
sandbox.run(Program(source, check, "check", ("f",)))
print("done", flush=True)
if {wait}: time.sleep(60)
"""


@pytest.fixture
def sandbox():
    with Sandbox(workers=1, cache=False) as sandbox:
        yield sandbox


def test_a_worker_that_cannot_be_started_is_an_infrastructure_error(sandbox, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(InfraError, match="cannot be started"):
        sandbox.run(RIGHT)


def test_workers_start_with_more_than_a_thousand_open_descriptors(sandbox):
    kept = [os.dup(0) for _ in range(1100)]
    try:
        assert sandbox.run(RIGHT).status == "passed"
    finally:
        for descriptor in kept:
            os.close(descriptor)


def test_no_worker_starts_before_the_first_run(sandbox):
    assert workers_of(sandbox) == []


@pytest.mark.parametrize("whom", ["parent", "supervisor", "zygotes"])
def test_a_worker_killed_from_outside_is_replaced_and_its_program_run_again(sandbox, whom):
    sandbox.run(RIGHT)
    (worker,) = workers_of(sandbox)
    below = sorted(descendants(worker))
    targets = {"parent": [worker], "supervisor": below[:1], "zygotes": below[1:]}[whom]

    def kill():
        for pid in targets:
            with contextlib.suppress(ProcessLookupError):  # it ended with one of the others
                os.kill(pid, signal.SIGKILL)

    killer = threading.Timer(0.2, kill)
    killer.start()
    outcome = sandbox.run(SLOW)
    killer.join()
    assert outcome.status == "passed"
    assert workers_of(sandbox) != [worker]
    assert eventually_gone({worker, *below})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_running_program_survives_stop_signals_to_the_process_group(sandbox, number):
    sandbox.run(RIGHT)
    (worker,) = workers_of(sandbox)

    def ask():
        for pid in (worker, *descendants(worker)):
            os.kill(pid, number)

    asker = threading.Timer(0.2, ask)
    asker.start()
    outcome = sandbox.run(SLOW)
    asker.join()
    assert outcome.status == "passed"
    assert workers_of(sandbox) == [worker]


def test_a_worker_killed_between_two_programs_is_replaced(sandbox):
    sandbox.run(RIGHT)
    (worker,) = workers_of(sandbox)
    os.kill(worker, signal.SIGKILL)
    time.sleep(0.1)
    assert sandbox.run(RIGHT).status == "passed"
    assert sandbox.run(WRONG).status == "failed"


def test_close_leaves_no_process_and_the_sandbox_may_be_used_again(sandbox):
    sandbox.run(RIGHT)
    below = {*workers_of(sandbox), *descendants(workers_of(sandbox)[0])}
    assert len(below) >= 3
    sandbox.close()
    assert eventually_gone(below)
    assert sandbox.run(RIGHT).status == "passed"


def test_a_garbage_collected_sandbox_leaves_no_process():
    sandbox = Sandbox(workers=2, cache=False)
    sandbox.run_many([RIGHT] * 4)
    below = set().union(*(descendants(pid) | {pid} for pid in workers_of(sandbox)))
    del sandbox
    gc.collect()
    assert eventually_gone(below)


def start_owner(*, loop, wait):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(loop=loop, wait=wait)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout.readline() == "up\n"
    return owner


@pytest.mark.parametrize("loop", [False, True])
def test_sigkill_of_the_owner_leaves_no_process(loop):
    owner = start_owner(loop=loop, wait=True)
    time.sleep(0.2)
    below = descendants(owner.pid)
    assert len(below) >= 4
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert eventually_gone(below)


def test_interpreter_exit_leaves_no_process():
    owner = start_owner(loop=False, wait=False)
    below = descendants(owner.pid)
    assert owner.stdout.readline() == "done\n"
    assert owner.wait(10) == 0
    owner.stdout.close()
    assert eventually_gone(below)


def count_resources(sandbox):
    pids = {os.getpid(), *descendants(os.getpid())}
    open_files = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in alive(pids))
    return len(alive(pids)), open_files


def temporary_files():
    folder = Path(tempfile.gettempdir())
    return {path.name for path in folder.iterdir() if path.name in ("junk", "x", "box")}


def soak(count):
    spoilers = [
        "import os\nos._exit(0)",
        "def f(x):\n    open('junk', 'w').write('x' * 100000)\n    return 9",
        "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)",
        "def f(x):\n    print('y' * 100000)\n    raise MemoryError",
        "import os\nfor n in range(99): os.pipe()",
        "def f(",
    ]
    programs = [Program(source, CHECK, "check", ("f",)) for source in spoilers]
    return [*([RIGHT] * 2 + [WRONG] * 2 + [programs[n % len(programs)]] for n in range(count))]


def test_resources_stay_constant_over_many_programs(sandbox):
    sandbox.run_many(program for batch in soak(12) for program in batch)
    before, files = count_resources(sandbox), temporary_files()
    (worker,) = workers_of(sandbox)
    for batch in soak(60):
        statuses = [sandbox.run(program).status for program in batch]
        assert statuses[:4] == ["passed", "passed", "failed", "failed"]
    assert count_resources(sandbox) == before
    assert workers_of(sandbox) == [worker]
    assert temporary_files() == files

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
from mlrl_envs.sandbox import Limits, Program, Sandbox
from mlrl_envs.sandbox.worker.handle import WorkerHandle

CHECK = "def check(candidate):\n    assert candidate(3) == 9\n"
RIGHT = Program("def f(x): return x * x", CHECK, "check", ("f",))
WRONG = Program("def f(x): return x", CHECK, "check", ("f",))
SLOW = Program("import time\ndef f(x):\n    time.sleep(1.5)\n    return 9", CHECK, "check", ("f",))
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


def descendants(root):
    """Return all descendants of a process, without the process itself."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
    found, layer = set(), {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found |= layer
    return found


def alive(pids):
    def state(pid):
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return "gone"

    return {pid for pid in pids if state(pid) not in ("gone", "Z", "X")}


def eventually_gone(pids, seconds=60.0):
    deadline = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pids)


def workers_of(sandbox):
    return [worker.process.pid for worker in sandbox._all]


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

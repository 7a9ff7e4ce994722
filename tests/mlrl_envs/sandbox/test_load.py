"""Verdicts on a loaded machine: waiting for a processor must not fail a program."""

import os
import signal
import sys
import time

import pytest

from mlrl_envs.errors import InfraError, OverloadedError
from mlrl_envs.sandbox import Limits, Program, Sandbox
from mlrl_envs.sandbox.jail.syscalls import die_with_parent
from tests.mlrl_envs.sandbox.test_reference_solutions import class_eval_program, rows

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

SPINNERS = 10
# Each call takes 0.2 s of processor time, wherever they run.
BUSY = """
import time
def f():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    return 1
"""
SLEEPER = "import time\ndef f():\n    time.sleep(60)\n    return 1\n"
ENDLESS = "def f():\n    while True:\n        pass\n"
# Programs that are ready to run most of the time, but give the processor away when they get it.
EVASIONS = {
    "yield": "import os\ndef f():\n    while True:\n        os.sched_yield()\n",
    "nap": "import time\ndef f():\n    while True:\n        time.sleep(1e-4)\n",
    "lock": "import threading\ndef f():\n    lock = threading.Lock()\n    while lock.acquire():\n"
    "        pass\n",
    "yielding_threads": """
import os, threading
def yield_forever():
    while True:
        os.sched_yield()
def f():
    threading.stack_size(1 << 16)
    for _ in range(16):
        threading.Thread(target=yield_forever, daemon=True).start()
    yield_forever()
""",
    "echo": """
import os, threading
def echo(source, sink):
    while True:
        os.write(sink[1], b"x")
        os.read(source[0], 1)
def f():
    one, other = os.pipe(), os.pipe()
    threading.Thread(target=echo, args=(one, other), daemon=True).start()
    echo(other, one)
""",
}
THREADS = """
import concurrent.futures
def f():
    for _ in range(4):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: sum(i * i for i in range(n)), [20_000] * 4))
    return 1
"""
CHECK = "def check(candidate):\n    assert candidate() == 1\n    assert candidate() == 1\n"


@pytest.fixture(scope="module", autouse=True)
def load():
    """Keep all cores busy with spinning processes, which end with this one."""
    spinners = []
    for _ in range(SPINNERS * max(1, (os.cpu_count() or 1) // 2)):
        child = os.fork()
        if child == 0:
            try:
                die_with_parent()
                while True:
                    pass
            finally:
                os._exit(0)
        spinners.append(child)
    yield
    for child in spinners:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def run(source, **limits):
    program = Program(source, CHECK, "check", ("f",), limits=Limits(**limits))
    with Sandbox(workers=1, cache=False) as sandbox:
        return sandbox.run(program)


@pytest.mark.slow
def test_a_program_that_gets_little_of_a_processor_passes():
    outcome = run(BUSY, wall_seconds=0.8, load_seconds=0.8, test_seconds=0.4, max_stretch=100)
    assert outcome.status == "passed"
    assert outcome.seconds > 0.8
    assert outcome.waited_seconds > 0.4


@pytest.mark.long
def test_class_eval_35_passes():
    (row,) = [row for row in rows("ClassEval.jsonl") if row["task_id"] == "ClassEval_35"]
    patient = Limits(wall_seconds=30, test_seconds=30, cpu_seconds=30)  # as the reward's
    with Sandbox(workers=1, limits=patient, cache=False) as sandbox:
        outcome = sandbox.run(class_eval_program(row))
    assert (outcome.status, outcome.passed) == ("passed", outcome.total)


@pytest.mark.slow
def test_a_program_that_sleeps_or_never_ends_still_times_out():
    for source in (SLEEPER, ENDLESS):
        outcome = run(source, test_seconds=0.4)
        assert outcome.status == "timeout"
        assert outcome.tests[0].error == "no answer within 0.4 s"


@pytest.mark.parametrize("name", EVASIONS)
@pytest.mark.slow
def test_a_program_that_waits_on_purpose_times_out(name):
    outcome = run(EVASIONS[name], wall_seconds=0.3, test_seconds=0.3, max_stretch=100)
    assert outcome.status == "timeout"


@pytest.mark.slow
def test_a_program_that_starts_many_threads_passes():
    outcome = run(THREADS, wall_seconds=3, test_seconds=3, max_stretch=100)
    assert outcome.status == "passed"


@pytest.mark.slow
def test_a_cell_that_waits_on_purpose_times_out():
    limits = Limits(test_seconds=0.3, max_stretch=100)
    with Sandbox(workers=1, limits=limits) as sandbox:
        assert sandbox.session().run("import os\nwhile True: os.sched_yield()").status == "timeout"


@pytest.mark.slow
def test_a_sleeping_program_gets_little_extra_time():
    assert run(SLEEPER, test_seconds=2).seconds < 10


@pytest.mark.slow
def test_a_program_that_would_take_too_long_is_an_overload_and_not_a_verdict():
    begun = time.monotonic()
    with pytest.raises(OverloadedError, match=r"waited .*max_stretch") as caught:
        run(ENDLESS, wall_seconds=1.5, test_seconds=1.5, max_stretch=1.2)
    assert isinstance(caught.value, InfraError)
    assert time.monotonic() - begun > 3  # it was tried twice


@pytest.mark.slow
def test_a_cell_that_gets_little_of_a_processor_ends_in_time():
    with Sandbox(workers=1, limits=Limits(test_seconds=0.8)) as sandbox:
        session = sandbox.session()
        # The clock of a session does not tell the time, so the work is a fixed number of steps.
        assert session.run("total = sum(range(10_000_000)); total").text == "49999995000000\n"
        assert session.run("import threading; threading.Event().wait(60)").status == "timeout"

"""A long run of many mixed programs in one sandbox.

MLRL_SOAK sets how many; with `-s` it prints processes, open files and resident KiB as it goes.
"""

import contextlib
import os
import random
import tempfile
import time
from pathlib import Path

import pytest

from mlrl_envs.sandbox import Limits, Program, Sandbox

CHECK = """
def check(candidate):
    for n in range(4):
        assert candidate(n, [n]) == [n, n * n]
"""
RIGHT = "def f(n, xs):\n    print(n)\n    return xs + [n * n]\n"
PATCHING = """
import unittest
from unittest.mock import patch
class T(unittest.TestCase):
    @patch("builtins.input", return_value="7")
    def test_f(self, _input):
        self.assertEqual(f(3, [3]), [3, 9])
"""
HOSTILE = (
    "import os\nos._exit(0)",
    "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)",
    "import os\nos.write(3, b'garbage!')\n" + RIGHT,
    "def f(n, xs):\n    open(f'junk{n}', 'w').write('x' * 1000000)\n",
    "def f(n, xs):\n    return 'x' * 3000000\n",
    "def f(n, xs):\n    raise MemoryError\n",
    "import threading, time\nfor _ in range(9): threading.Timer(9, print).start()",
    "import os\nfor _ in range(20): os.pipe()\ndef f(n, xs): return f",
    "def f(n, xs):\n    return [object() for _ in range(500)]\n",
    "def f(",
    "class f(Exception): pass",
    "import decimal, statistics\ndef f(n, xs): return decimal.Decimal(n)",
)


def resident_kib(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/status").read_text().split()
            if "VmRSS:" in fields:
                total += int(fields[fields.index("VmRSS:") + 1])
    return total


def footprint(descendants):
    """Return numbers of processes and open files, and resident KiB, of this process tree."""
    pids = [os.getpid(), *descendants]
    files = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            files += len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return len(pids), files, resident_kib(pids)


def below(root):
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
    found, layer = [], {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found += layer
    return found


def batches(count):
    chance = random.Random(0)
    while count > 0:
        batch = []
        for _ in range(min(count, 500)):
            source = chance.choice(HOSTILE) if chance.random() < 0.2 else RIGHT
            unit = chance.random() < 0.1
            tests, style = (PATCHING, "unittest") if unit else (CHECK, "check")
            batch.append(Program(f"{source}\n# {chance.random()}", tests, style, ("f",)))
        count -= len(batch)
        yield batch


def is_right(program, outcome):
    if program.source.startswith(RIGHT):
        return outcome.status == "passed"
    return outcome.status != "passed" and outcome.passed < outcome.total


def left_behind():
    """Return files that a program or a worker may have left on the host."""
    folders = [Path(tempfile.gettempdir()), Path("/dev/shm"), Path.cwd()]  # noqa: S108
    names = {path.name for folder in folders if folder.exists() for path in folder.iterdir()}
    return {name for name in names if name.startswith(("junk", "mlrl-", "box"))}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_resources_stay_constant_and_every_verdict_is_right():
    count = int(os.environ.get("MLRL_SOAK", "1500"))
    limits = Limits(wall_seconds=20, test_seconds=10, load_seconds=10)
    with Sandbox(workers=2, limits=limits, cache=False) as sandbox:
        sandbox.run_many(next(batches(500)))
        workers, files = {worker.process.pid for worker in sandbox._all}, left_behind()
        before = footprint(below(os.getpid()))
        begun, done = time.monotonic(), 0
        for batch in batches(count):
            outcomes = sandbox.run_many(batch)
            wrong = [(p, o) for p, o in zip(batch, outcomes, strict=True) if not is_right(p, o)]
            assert wrong == []
            done += len(batch)
            if done % 10_000 == 0 or done == count:
                after = footprint(below(os.getpid()))
                rate = done / (time.monotonic() - begun)
                print(f"{done} programs, {rate:.0f}/s: {before} -> {after}", flush=True)
        assert {worker.process.pid for worker in sandbox._all} == workers
    # At the time of either count, a reused judge may just have been replaced.
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 30
    assert after[2] <= before[2] * 1.25 + 20_000
    assert left_behind() == files

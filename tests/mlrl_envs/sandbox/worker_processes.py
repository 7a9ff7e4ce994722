"""Programs for a sandbox, and the processes of its workers as the system lists them."""

import contextlib
import time
from pathlib import Path

from mlrl_envs.sandbox import Program

CHECK = "def check(candidate):\n    assert candidate(3) == 9\n"
RIGHT = Program("def f(x): return x * x", CHECK, "check", ("f",))
WRONG = Program("def f(x): return x", CHECK, "check", ("f",))
SLOW = Program("import time\ndef f(x):\n    time.sleep(1.5)\n    return 9", CHECK, "check", ("f",))


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

"""Tests that workers of sessions leave no process and no file."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

OWNER = """
import os, sys, time
from mlrl_envs.sandbox import Sandbox
sandbox = Sandbox(workers=1)
session = sandbox.session({"f": "text"})
print(session.run("1").text, end="", flush=True)
session.run("import time; time.sleep(60)") if sys.argv[1] == "busy" else None
if sys.argv[1] == "collected":
    del session, sandbox
    import gc; gc.collect()
    time.sleep(60)
if sys.argv[1] == "idle": time.sleep(60)
"""


def _processes_below(root):
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                parents[int(entry.name)] = int(fields[1])
    found, layer = set(), {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found |= layer
    return found


def _eventually(holds, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("end", ["idle", "busy", "exit", "collected"])
@pytest.mark.parametrize("tier", ["A", "B"])
def test_no_process_and_no_file_outlives_its_owner(end, tier, tmp_path):
    environment = {**os.environ, "MLRL_SANDBOX_TIER": tier}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, end], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert owner.stdout.readline() == b"1\n"
        below = _processes_below(owner.pid)
        if end in ("idle", "busy"):
            assert below
            time.sleep(0.2)
            owner.kill()
        if end == "collected":
            assert _eventually(lambda: not _processes_below(owner.pid))
            owner.kill()
        owner.wait(timeout=20)
        assert _eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    finally:
        owner.kill()
        owner.stdout.close()
    if tier == "B":
        made = Path(tempfile.gettempdir()).glob("mlrl-session-*")
        assert _eventually(lambda: not [p for p in made if p.stat().st_mtime > time.time() - 30])

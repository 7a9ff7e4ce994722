"""A cluster of Ray on this machine, started once and shared by the tests of a session."""

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cluster():
    """The address of a head with four cores; its token and its logs are in a folder of its own."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    (folder / "token").write_text(secrets.token_hex(32))
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(folder / "token")  # read when ray is imported
    os.environ["RAY_AUTH_MODE"], os.environ["RAY_USAGE_STATS_ENABLED"] = "token", "0"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        *("--port", str(port), "--num-cpus", "4", "--include-dashboard", "false"),
        *("--temp-dir", str(folder / "r"), "--node-ip-address", "127.0.0.1"),
    ]
    with (folder / "log").open("w") as log:
        head = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(head, port, folder / "log")
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(head.pid, signal.SIGTERM)
        try:
            head.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(head.pid, signal.SIGKILL)
        for name in ("RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
            os.environ.pop(name, None)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(head, port, log):
    deadline = time.monotonic() + 240
    while "Ray runtime started" not in log.read_text():
        assert head.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)

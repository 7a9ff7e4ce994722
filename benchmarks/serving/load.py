"""Load on environment servers, and seconds until an episode goes on after a fault.

`python -m benchmarks.serving.load [--sessions 100000]` starts servers on this machine and prints a
JSON object:

- seconds that a step takes whose server was killed (another address, or the same one started
  again), stopped with SIGSTOP, or has forgotten the session
- seconds of 1,000 sessions of two turns, played by 10 processes
- MiB and descriptors of a server after 2,000 sessions and after all that nobody closes

Not covered: machines that are lost, which look like a stopped server.
"""

import argparse
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlrl_envs

ENV_ID = "mlrl/story-v1"
TEXTS = {"setup": "A fox waits.", "story": "The fox waited for the snow."}
CLIENT = """
import sys, mlrl_envs
seeds = range(int(sys.argv[2]), int(sys.argv[2]) + 100)
envs = mlrl_envs.make_vec(f"remote://{sys.argv[1]}/mlrl/story-v1", 100, max_turns=2).envs
mlrl_envs.reset_many(envs, seeds, [None] * 100)
for turn in range(2):
    mlrl_envs.step_many(envs, [{agent: f"{agent} {seed}" for agent in ("setup", "story")}
                               for seed in seeds])
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    given = parser.parse_args(argv)
    found: dict[str, float] = {}
    for name, fault in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        found[f"{name}, another server, seconds"] = _taken_over(fault)
    found["killed, started again, seconds"], found["start, seconds"] = _started_again()
    with Server() as server:
        found["step, seconds"], found["session lost, seconds"] = _forgotten(server)
        found["1,000 sessions from 10 processes, seconds"] = _clients(server)
    found |= _memory(given.sessions)
    print(json.dumps({name: round(value, 3) for name, value in found.items()}, indent=2))
    return 0


class Server:
    """A process that serves stories.

    Args:
        words: Further options of the command.
    """

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "mlrl_learners", "serve", "env", ENV_ID, "--no-sandbox"]
        if "--port" not in words:
            words = (*words, "--port", "0")
        self.process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None  # noqa: S101  a pipe
        line = self.process.stdout.readline()
        self.address = line.removeprefix("remote://").partition("/")[0]

    def __enter__(self) -> "Server":
        """Return the server."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the process."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def figures(self) -> tuple[float, float]:
        """Return resident MiB and the number of descriptors."""
        folder = Path(f"/proc/{self.process.pid}")
        kib = (folder / "status").read_text().partition("VmRSS:")[2].split()[0]
        return int(kib) / 1024, float(len(list((folder / "fd").iterdir())))


def _seconds_of_a_step(env: mlrl_envs.TextEnv) -> float:
    started = time.perf_counter()
    env.step(TEXTS)
    return time.perf_counter() - started


def _begun(addresses: str) -> mlrl_envs.TextEnv:
    env = mlrl_envs.make(f"remote://{addresses}/{ENV_ID}", max_turns=8)
    env.reset(seed=1)
    env.step(TEXTS)
    return env


def _taken_over(fault: int) -> float:
    """Return the seconds of a step whose server has a fault, and another one has none."""
    with Server() as one, Server() as other:
        env = _begun(f"{one.address},{other.address}")
        held = env._episode.session.address  # type: ignore[attr-defined]  # noqa: SLF001
        (one if one.address == held else other).process.send_signal(fault)
        return _seconds_of_a_step(env)


def _started_again() -> tuple[float, float]:
    """Return the seconds of a step after its server was started again, and those of the start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with Server("--port", port) as first:
        env = _begun(first.address)
        first.process.kill()
        first.process.wait()
        started = time.perf_counter()
        with Server("--port", port):
            start = time.perf_counter() - started
            return _seconds_of_a_step(env), start


def _forgotten(server: Server) -> tuple[float, float]:
    """Return the seconds of a step, and of one whose session was evicted."""
    env = _begun(server.address)
    usual = _seconds_of_a_step(env)
    with Server("--max-sessions", "4") as small:
        env = _begun(small.address)
        for _ in range(8):
            _begun(small.address)
        return usual, _seconds_of_a_step(env)


def _clients(server: Server) -> float:
    started = time.perf_counter()
    clients = [
        subprocess.Popen([sys.executable, "-c", CLIENT, server.address, str(number * 1_000)])
        for number in range(10)
    ]
    if any(client.wait() for client in clients):
        raise RuntimeError("a client failed")
    return time.perf_counter() - started


def _memory(sessions: int) -> dict[str, float]:
    """Return the figures of a server whose clients close nothing."""
    found = {}
    with Server("--max-sessions", "2000") as server:
        envs: Sequence[Any] = mlrl_envs.make_vec(f"remote://{server.address}/{ENV_ID}", 1_000).envs
        for number in range(1, sessions // 1_000 + 1):
            mlrl_envs.reset_many(envs, range(1_000), [None] * 1_000)
            for env in envs:
                env._episode.session.owned = False  # noqa: SLF001
            if number == 2 or number == sessions // 1_000:
                memory, descriptors = server.figures()
                found[f"{number * 1_000} sessions, MiB"] = memory
                found[f"{number * 1_000} sessions, descriptors"] = descriptors
    return found


if __name__ == "__main__":
    raise SystemExit(main())

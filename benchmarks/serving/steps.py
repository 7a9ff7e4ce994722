"""CPU cost of a step on an environment server, in this process and in the server's.

`python -m benchmarks.serving.steps [--steps 2000]` starts a server, plays the same steps here and
there, one by one and in batches of 64, and prints a JSON object: CPU milliseconds a step. Not
covered: latency over a network, and environments that run programs, whose cost is that of the
sandbox.
"""

import argparse
import copy
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import mlrl_envs

ENV_IDS = ("mlrl/matrix-v0", "mlrl/story-v1")  # a step of the first costs little by itself
CHARS = 1_024  # of each of the two answers
BATCH = 64


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2_048)
    steps = parser.parse_args(argv).steps
    command = [sys.executable, "-m", "mlrl_learners", "serve", "env", *ENV_IDS]
    started = time.perf_counter()
    with subprocess.Popen(
        [*command, "--no-sandbox", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101  a pipe
        remote_ids = [process.stdout.readline().strip() for _ in ENV_IDS]
        found = {"start_seconds": time.perf_counter() - started}
        found["memory_mib"] = _memory(process.pid)
        for env_id, remote_id in zip(ENV_IDS, remote_ids, strict=True):
            for name, each in (("local", env_id), ("remote", remote_id)):
                found[f"{env_id} {name}, single"] = _cost(process.pid, each, steps // 8, 1)
                found[f"{env_id} {name}, batched"] = _cost(process.pid, each, steps, BATCH)
        process.terminate()
    print(json.dumps({name: round(value, 4) for name, value in found.items()}, indent=2))
    return 0


def _cost(pid: int, env_id: str, steps: int, batch: int) -> float:
    """Return the CPU milliseconds of a step, in both processes."""
    envs = mlrl_envs.make_vec(env_id, batch, max_turns=8).envs
    mlrl_envs.reset_many(envs, range(batch), [None] * batch)
    actions = [_actions(env.possible_agents, number) for number, env in enumerate(envs)]
    rounds = max(1, steps // batch)
    starts = [[copy.deepcopy(env) for env in envs] for _ in range(rounds)]
    mlrl_envs.step_many([copy.deepcopy(env) for env in envs], actions)
    before = _cpu(pid)
    for number, start in enumerate(starts):
        actions = [_actions(env.possible_agents, number + i) for i, env in enumerate(start)]
        mlrl_envs.step_many(start, actions)
    return (_cpu(pid) - before) * 1_000 / (rounds * batch)


def _cpu(pid: int) -> float:
    """Return the CPU seconds of this process and of another one."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    threads = Path(f"/proc/{pid}/task").iterdir()
    ran = sum(int((each / "schedstat").read_text().split()[0]) for each in threads)
    return own.ru_utime + own.ru_stime + ran / 1e9


def _memory(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1_024


def _actions(agents: Sequence[str], number: int) -> dict[str, str]:
    words = f"The fox number {number} waited for the snow and the ferryman. " * 40
    return {agent: words[place : CHARS + place] for place, agent in enumerate(agents)}


if __name__ == "__main__":
    sys.exit(main())

"""What the two zygotes do for each program: prepare, fork, confine, run."""

# pathlib is not loaded in workers
# ruff: noqa: PTH123

import math
import os
import random
import resource
import signal
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from mlrl_envs.sandbox.candidate import candidate
from mlrl_envs.sandbox.judge.board import Board
from mlrl_envs.sandbox.worker import practice
from mlrl_envs.sandbox.worker.allowance import Allowance

__all__ = ["Settings", "prepare_candidate", "prepare_judge", "share_of", "virtual_bytes"]

Settings = dict[str, Any]
Run = Callable[[list[int]], None]
SHARE = struct.Struct("=QQQ")  # address space in bytes, processor seconds, bytes of output
LINK = 3  # where a candidate finds its judge
SLACK = 16 << 20
JUDGE_MEMORY = 2 << 30


def share_of(allowed: Allowance, base_bytes: int) -> bytes:
    """Return a candidate's limits as its zygote takes them.

    Args:
        allowed: The limits of its program.
        base_bytes: Address space of the bare interpreter.
    """
    memory = base_bytes + int(allowed.memory_mib * (1 << 20))
    return SHARE.pack(memory, math.ceil(allowed.cpu_seconds), allowed.output_bytes)


def prepare_candidate(seal: Callable[[], None], scratch: str) -> Callable[[bytes], Run]:
    """Return what the candidates' zygote does before each fork.

    What is the same for all is done once here and inherited; every step that is left to the
    child touches pages that must be copied for it first. The payload is a `share_of`.

    Args:
        seal: Puts the last layer on, after which the process cannot fork.
        scratch: Working directory.
    """
    practice.warm_candidates()
    random.seed(0)  # as with hashes, equal programs draw equal numbers
    limit_files()
    sys.setrecursionlimit(sys.getrecursionlimit() + candidate.EXTRA_DEPTH)
    ready = candidate.Candidate(LINK, candidate.Output())
    ready.take_over()

    def run(payload: bytes, descriptors: list[int]) -> None:
        link, stdout = descriptors
        memory, cpu, output = SHARE.unpack(payload)
        os.dup2(stdout, 1)
        os.dup2(link, LINK)
        os.closerange(4, max(link, stdout, 16) + 1)
        os.chdir(scratch)
        limit_use(memory, cpu)
        seal()
        ready.run(output)

    return lambda payload: partial(run, payload)


def limit_resources(memory: int, cpu: int) -> None:
    """Bind this process to its share of memory, processor time, files and descriptors."""
    limit_use(memory, cpu)
    limit_files()


def limit_use(memory: int, cpu: int) -> None:
    """Bind this process to its share of memory, in bytes, and processor time, in seconds."""
    limit(resource.RLIMIT_AS, memory)
    limit(resource.RLIMIT_CPU, cpu, cpu + 1)


def limit_files() -> None:
    """Bind this process and what it forks to small files and few descriptors."""
    limit(resource.RLIMIT_FSIZE, 16 << 20)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_CORE, 0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Set one limit; only where nothing is confined anyway may the system not know it."""
    try:
        resource.setrlimit(kind, (soft, soft if hard is None else hard))
    except (ValueError, OSError):
        if sys.platform.startswith("linux"):
            raise


def prepare_judge(board: Board, scratch: str) -> Callable[[bytes], Run]:
    """Return what the judges' zygote does before each fork.

    The payload is a job, whose tests are compiled before the fork, or empty: then the child
    becomes a standing judge, which runs the jobs that come to it one after the other.
    """
    from mlrl_envs.sandbox.judge.loop import Bench

    bench = Bench(board)
    practice.warm_judges(bench.run, board)

    def prepare(payload: bytes) -> Run:
        if payload:
            bench.make_ready(payload)
        return lambda descriptors: run(payload, descriptors)

    def run(payload: bytes, descriptors: list[int]) -> None:
        os.chdir(scratch)
        limit(resource.RLIMIT_AS, JUDGE_MEMORY)
        if payload:
            bench.run(payload, descriptors[0])
        else:
            bench.serve(descriptors[0])

    return prepare


def virtual_bytes() -> int:
    """Return this process's address space in bytes, with room for what it will import yet."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize() + SLACK
    except OSError:
        return 64 << 20

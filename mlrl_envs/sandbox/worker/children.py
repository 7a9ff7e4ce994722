"""Children of the two zygotes: preparation before the fork, resource limits, and main function.

`prepare_candidate` and `prepare_judge` run once in their zygote and return the zygote's `prepare`
function (see `worker/zygote.py`).
"""

# Workers do not import pathlib, to keep their processes small.
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

from mlrl_envs.sandbox.candidate import process
from mlrl_envs.sandbox.judge.board import Board
from mlrl_envs.sandbox.worker import practice
from mlrl_envs.sandbox.worker.job_header import JobLimits

__all__ = [
    "LINK",
    "Settings",
    "address_space_bytes",
    "limit_resources",
    "pack_share",
    "prepare_candidate",
    "prepare_judge",
    "take_descriptors",
]

Settings = dict[str, Any]
Run = Callable[[list[int]], None]
SHARE = struct.Struct("=QQQ")  # address space in bytes, processor seconds, bytes of output
LINK = 3  # the candidate's descriptor of the socket to its judge
SLACK = 16 << 20  # bytes for modules that are imported after the measurement
JUDGE_MEMORY = 2 << 30  # bytes of address space


def pack_share(allowed: JobLimits, base_bytes: int) -> bytes:
    """Return the limits of a candidate as the payload for its zygote.

    Args:
        allowed: Limits of the program.
        base_bytes: Address space of the bare interpreter; the program's memory is added to it.
    """
    memory = base_bytes + int(allowed.memory_mib * (1 << 20))
    return SHARE.pack(memory, math.ceil(allowed.cpu_seconds), allowed.output_bytes)


def prepare_candidate(seal: Callable[[], None], scratch: str) -> Callable[[bytes], Run]:
    """Return the `prepare` function of the candidates' zygote.

    Steps that are equal for all candidates happen once, here. Each step in the child costs more,
    because it writes to pages that the kernel must first copy. The payload comes from
    `pack_share`.

    Args:
        seal: Installs the last filter, after which the process cannot fork.
        scratch: Working directory of the programs.
    """
    practice.warm_up_candidates()
    random.seed(0)  # equal programs draw equal numbers; the hash seed is fixed, too
    limit_files()
    sys.setrecursionlimit(sys.getrecursionlimit() + process.EXTRA_DEPTH)
    candidate = process.Candidate(LINK, process.Output())
    candidate.take_over()

    def run(payload: bytes, descriptors: list[int]) -> None:
        memory, cpu, output = SHARE.unpack(payload)
        take_descriptors(*descriptors)
        os.chdir(scratch)
        limit_memory_and_cpu(memory, cpu)
        seal()
        candidate.run(output)

    return lambda payload: partial(run, payload)


def take_descriptors(link: int, stdout: int, nothing: int) -> None:
    """Make these the only descriptors of the process: 3, 1, and both 0 and 2.

    All of them are of this process alone: flags of an inherited one would outlive the process, so
    that a program could leave a mark for the next one.
    """
    os.dup2(nothing, 0)
    os.dup2(stdout, 1)
    os.dup2(nothing, 2)
    os.dup2(link, LINK)
    os.closerange(4, max(link, stdout, nothing, 16) + 1)


def limit_resources(memory: int, cpu: int) -> None:
    """Limit memory (bytes), processor time (seconds), file sizes and descriptors."""
    limit_memory_and_cpu(memory, cpu)
    limit_files()


def limit_memory_and_cpu(memory: int, cpu: int) -> None:
    """Limit the address space (bytes) and the processor time (seconds) of this process."""
    limit(resource.RLIMIT_AS, memory)
    limit(resource.RLIMIT_CPU, cpu, cpu + 1)


def limit_files() -> None:
    """Limit file sizes and the number of descriptors of this process and its children."""
    limit(resource.RLIMIT_FSIZE, 16 << 20)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_CORE, 0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Set one resource limit.

    Raises:
        OSError: If Linux refuses. Other systems (tier D) lack some of the limits; there the
            refusal is ignored.
    """
    try:
        resource.setrlimit(kind, (soft, soft if hard is None else hard))
    except (ValueError, OSError):
        if sys.platform.startswith("linux"):
            raise


def prepare_judge(board: Board, scratch: str) -> Callable[[bytes], Run]:
    """Return the `prepare` function of the judges' zygote.

    With a job as payload, its tests are compiled before the fork and the child runs this job only.
    With an empty payload, the child becomes the reused judge, which runs jobs one after the other.
    """
    from mlrl_envs.sandbox.judge.loop import JudgeLoop

    loop = JudgeLoop(board)
    practice.warm_up_judges(loop.run, board)

    def prepare(payload: bytes) -> Run:
        if payload:
            loop.make_ready(payload)
        return lambda descriptors: run(payload, descriptors)

    def run(payload: bytes, descriptors: list[int]) -> None:
        os.chdir(scratch)
        limit(resource.RLIMIT_AS, JUDGE_MEMORY)
        if payload:
            loop.run(payload, descriptors[0])
        else:
            loop.serve(descriptors[0])

    return prepare


def address_space_bytes() -> int:
    """Return the size of this process's address space in bytes, plus `SLACK`."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize() + SLACK
    except OSError:
        return 64 << 20

"""A warm process that forks one child a program: one zygote for judges, one for candidates.

A zygote never runs a program itself and never reads what a candidate's child may say. Each child
is killed and reaped by its own zygote, so that a kill can never reach a later job.
"""

import ctypes
import gc
import math
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable

from mlrl_envs.sandbox.jail.syscalls import die_with_parent
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker import placement

__all__ = ["FORK_FAILED", "Ending", "Zygote", "bare_fork", "end", "start", "used"]

ENDING = struct.Struct("=idq")  # wait status, processor seconds, resident KiB
FORK_FAILED = -1
Ending = tuple[int, float, int]
Run = Callable[[list[int]], None]
USED = struct.Struct("=d")
START, END, ASK = b"+", b"-", b"?"
PROCESS_CLOCK = 2  # see clock_getcpuclockid(3)


def start(
    zygote: socket.socket,
    slot: bytes,
    payload: bytes,
    descriptors: list[int],
    core: placement.Core = placement.ANYWHERE,
) -> None:
    """Have a zygote fork a child.

    Args:
        zygote: Socket to it.
        slot: One byte that names the child until it is ended.
        payload: What the child is told.
        descriptors: What the child is handed.
        core: Where the zygote and its child run from now on.
    """
    frames.send_with_descriptors(zygote, START + slot + core + payload, descriptors)


def end(zygote: socket.socket, slot: bytes) -> Ending:
    """Kill the child in a slot and return how it ended; wait status -1 if it never was.

    Raises:
        FrameError: If the zygote itself is gone.
    """
    frames.send_with_descriptors(zygote, END + slot, [])
    answer = zygote.recv(ENDING.size, socket.MSG_WAITALL)
    if len(answer) < ENDING.size:
        raise frames.FrameError("a zygote is gone")
    status, seconds, resident = ENDING.unpack(answer)
    return status, seconds, resident


def bare_fork() -> int:
    """Fork without the interpreter's own precautions, which take a tenth of a program's time.

    They mend locks and threads, which a process with one thread has no need of, and draw new
    random numbers: children forked like this all draw the same ones.

    Raises:
        OSError: If the kernel refuses.
    """
    child: int = _fork()
    if child < 0:
        raise OSError("fork failed")
    return child


_fork = ctypes.PyDLL(None).fork  # unlike CDLL, it keeps the interpreter locked


def used(zygote: socket.socket, slot: bytes) -> float:
    """Return the processor seconds that the child in a slot has had; infinite if none can tell.

    Raises:
        FrameError: If the zygote itself is gone.
    """
    frames.send_with_descriptors(zygote, ASK + slot, [])
    answer = zygote.recv(USED.size, socket.MSG_WAITALL)
    if len(answer) < USED.size:
        raise frames.FrameError("a zygote is gone")
    return float(USED.unpack(answer)[0])


class Zygote:
    """Forks and ends children at the word of a supervisor.

    Args:
        link: Socket to the supervisor.
        descriptors: How many descriptors come with each start.
        prepare: Runs in the zygote before each fork; what it returns runs in the child, which
            ends when that returns.
        fork: `os.fork`, or `bare_fork` for a process without threads.
    """

    def __init__(
        self,
        link: socket.socket,
        *,
        descriptors: int,
        prepare: Callable[[bytes], Run],
        fork: Callable[[], int] = os.fork,
    ) -> None:
        self._link = link
        self._count = descriptors
        self._prepare = prepare
        self._children: dict[bytes, int] = {}
        self._pid = os.getpid()
        self._place = placement.Place()
        self._fork = fork

    def serve(self) -> None:
        """Fork and reap until the supervisor hangs up."""
        gc.collect()
        gc.freeze()
        while True:
            message = frames.receive_with_descriptors(self._link, self._count)
            if message is None:
                for slot in list(self._children):
                    self._kill(slot)
                os._exit(0)
            payload, descriptors = message
            slot = payload[1:2]
            if payload[:1] == START:
                self._place.follow(payload[2:4])
                self._start(slot, payload[4:], descriptors)
            elif payload[:1] == END:
                self._link.sendall(ENDING.pack(*self._kill(slot)))
            else:
                self._link.sendall(USED.pack(self._seconds_of(slot)))

    def _start(self, slot: bytes, payload: bytes, descriptors: list[int]) -> None:
        try:
            run = self._prepare(payload)
            child = self._fork()
        except (OSError, MemoryError):
            child = FORK_FAILED
        if child == 0:
            self._run_child(run, descriptors)
        self._children[slot] = child
        for descriptor in descriptors:
            os.close(descriptor)

    def _seconds_of(self, slot: bytes) -> float:
        child = self._children.get(slot, FORK_FAILED)
        try:
            return time.clock_gettime(~child << 3 | PROCESS_CLOCK) if child > 0 else math.inf
        except OSError:  # not on Linux
            return math.inf

    def _kill(self, slot: bytes) -> Ending:
        """End a child, whatever it is doing, and return how it ended."""
        child = self._children.pop(slot, FORK_FAILED)
        if child == FORK_FAILED:
            return FORK_FAILED, 0.0, 0
        os.kill(child, signal.SIGKILL)  # if it has ended, nobody else has its number yet
        _pid, status, usage = os.wait4(child, 0)
        return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def _run_child(self, run: Run, descriptors: list[int]) -> None:
        """Run a child to its end; it must never come back into the zygote's loop."""
        code = 1
        try:
            die_with_parent()
            if os.getppid() == self._pid:
                os.close(self._link.fileno())
                run(descriptors)
                code = 0
        except BaseException:  # noqa: BLE001  standard error leads nowhere unless debugging
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

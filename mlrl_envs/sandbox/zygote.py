"""A warm process that forks one child a program: one zygote for judges, one for candidates.

A zygote never runs a program itself and never reads what a candidate's child may say. Each child
is killed and reaped by its own zygote, so that a kill can never reach a later job.
"""

import contextlib
import gc
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

from mlrl_envs.sandbox import frames

__all__ = ["FORK_FAILED", "Ending", "Zygote", "end", "start"]

ENDING = struct.Struct("=idq")  # wait status, processor seconds, resident KiB
FORK_FAILED = -1
Ending = tuple[int, float, int]
Run = Callable[[list[int]], None]
START, END = b"+", b"-"


def start(zygote: socket.socket, slot: bytes, payload: bytes, descriptors: list[int]) -> None:
    """Have a zygote fork a child.

    Args:
        zygote: Socket to it.
        slot: One byte that names the child until it is ended.
        payload: What the child is told.
        descriptors: What the child is handed.
    """
    frames.send_with_descriptors(zygote, START + slot + payload, descriptors)


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


class Zygote:
    """Forks and ends children at the word of a supervisor.

    Args:
        link: Socket to the supervisor.
        descriptors: How many descriptors come with each start.
        prepare: Runs in the zygote before each fork; what it returns runs in the child, which
            ends when that returns.
        die_with_parent: Runs in the child first, so that none outlives its zygote.
    """

    def __init__(
        self,
        link: socket.socket,
        *,
        descriptors: int,
        prepare: Callable[[bytes], Run],
        die_with_parent: Callable[[], None],
    ) -> None:
        self._link = link
        self._count = descriptors
        self._prepare = prepare
        self._die_with_parent = die_with_parent
        self._children: dict[bytes, int] = {}
        self._pid = os.getpid()

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
                self._start(slot, payload[2:], descriptors)
            else:
                self._link.sendall(ENDING.pack(*self._kill(slot)))

    def _start(self, slot: bytes, payload: bytes, descriptors: list[int]) -> None:
        try:
            run = self._prepare(payload)
            child = os.fork()
        except (OSError, MemoryError):
            child = FORK_FAILED
        if child == 0:
            self._run_child(run, descriptors)
        self._children[slot] = child
        for descriptor in descriptors:
            os.close(descriptor)

    def _kill(self, slot: bytes) -> Ending:
        """End a child, whatever it is doing, and return how it ended."""
        child = self._children.pop(slot, FORK_FAILED)
        if child == FORK_FAILED:
            return FORK_FAILED, 0.0, 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _pid, status, usage = os.wait4(child, 0)
        return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def _run_child(self, run: Run, descriptors: list[int]) -> None:
        """Run a child to its end; it must never come back into the zygote's loop."""
        code = 1
        try:
            self._die_with_parent()
            if os.getppid() == self._pid:
                self._link.close()
                run(descriptors)
                code = 0
        except BaseException:  # noqa: BLE001  standard error leads nowhere unless debugging
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

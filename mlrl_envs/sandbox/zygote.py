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

__all__ = ["ENDING", "FORK_FAILED", "Ending", "Zygote"]

ENDING = struct.Struct("=idq")  # wait status, processor seconds, resident KiB
FORK_FAILED = -1
Ending = tuple[int, float, int]


class Zygote:
    """Serves "go" and "end" on a socket until its peer hangs up.

    Args:
        link: Socket to the supervisor.
        descriptors: How many descriptors come with each "go".
        prepare: Runs in the zygote before each fork; what it returns runs in the child, which
            ends when that returns.
        die_with_parent: Runs in the child first, so that none outlives its zygote.
    """

    def __init__(
        self,
        link: socket.socket,
        *,
        descriptors: int,
        prepare: Callable[[bytes], Callable[[list[int]], None]],
        die_with_parent: Callable[[], None],
    ) -> None:
        self._link = link
        self._count = descriptors
        self._prepare = prepare
        self._die_with_parent = die_with_parent
        self._child = 0
        self._pid = os.getpid()

    def serve(self) -> None:
        """Fork and reap until the supervisor hangs up."""
        gc.collect()
        gc.freeze()
        while True:
            message = frames.receive_with_descriptors(self._link, self._count)
            if message is None:
                self._kill()
                os._exit(0)
            payload, descriptors = message
            if payload:
                self._start(payload, descriptors)
            else:
                self._link.sendall(ENDING.pack(*self._kill()))

    def _start(self, payload: bytes, descriptors: list[int]) -> None:
        try:
            run = self._prepare(payload)
            self._child = os.fork()
        except (OSError, MemoryError):
            self._child = FORK_FAILED
        if self._child == 0:
            self._run_child(run, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _kill(self) -> Ending:
        """End the child, whatever it is doing, and return how it ended."""
        if self._child <= 0:
            return FORK_FAILED, 0.0, 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        _pid, status, usage = os.wait4(self._child, 0)
        self._child = 0
        return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def _run_child(self, run: Callable[[list[int]], None], descriptors: list[int]) -> None:
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

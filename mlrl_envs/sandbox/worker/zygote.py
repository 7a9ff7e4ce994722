"""Zygotes: initialised processes that fork one child per program.

A worker has one zygote for judges and one for candidates. A zygote never runs a program itself and
never reads data from a child. Each child is killed and reaped by the zygote that forked it, so a
late kill can never reach another process that was given the same number.
"""

import ctypes
import gc
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

from mlrl_envs.sandbox.jail.syscalls import die_with_parent
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker import placement

__all__ = [
    "FORK_FAILED",
    "ExitRecord",
    "Zygote",
    "bare_fork",
    "end_child",
    "start_child",
]

ExitRecord = tuple[int, float, int]  # wait status, processor seconds, peak resident KiB
EXIT_RECORD = struct.Struct("=idq")
FORK_FAILED = -1
Run = Callable[[list[int]], None]
START, END = b"+", b"-"  # first byte of a message to a zygote


def start_child(
    zygote: socket.socket,
    slot: bytes,
    payload: bytes,
    descriptors: list[int],
    core: placement.Core = placement.ANY_CORE,
) -> None:
    """Make a zygote fork a child.

    Args:
        zygote: Socket to the zygote.
        slot: One byte that identifies the child until it is ended.
        payload: Argument of the zygote's `prepare`.
        descriptors: File descriptors for the child.
        core: Core that the zygote and its child run on from now on.
    """
    frames.send_with_descriptors(zygote, START + slot + core + payload, descriptors)


def end_child(zygote: socket.socket, slot: bytes) -> ExitRecord:
    """Kill the child in a slot and return its exit record; wait status -1 if the fork failed.

    Raises:
        FrameError: If the zygote has died.
    """
    frames.send_with_descriptors(zygote, END + slot, [])
    answer = zygote.recv(EXIT_RECORD.size, socket.MSG_WAITALL)
    if len(answer) < EXIT_RECORD.size:
        raise frames.FrameError("a zygote has died")
    status, seconds, resident = EXIT_RECORD.unpack(answer)
    return status, seconds, resident


def bare_fork() -> int:
    """Fork without the interpreter's fork handlers, which take a tenth of a program's time.

    The handlers reset locks and threads, which a single-threaded process does not need, and
    reseed `random`: children of a bare fork all draw the same random numbers.

    Raises:
        OSError: If the kernel refuses.
    """
    child: int = _fork()
    if child < 0:
        raise OSError("the kernel refused to fork a process")
    return child


_fork = ctypes.PyDLL(None).fork  # `PyDLL` keeps the GIL during the call, `CDLL` releases it


class Zygote:
    """Forks and ends children on the supervisor's request.

    Args:
        link: Socket to the supervisor.
        descriptors: Number of file descriptors sent with each start.
        prepare: Runs in the zygote before each fork. The function that it returns runs in the
            child, which exits when the function returns.
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
        self._affinity = placement.Affinity()
        self._fork = fork

    def serve(self) -> None:
        """Fork and reap children until the supervisor closes its socket."""
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
                self._affinity.move_to(payload[2:4])
                self._start(slot, payload[4:], descriptors)
            else:
                self._link.sendall(EXIT_RECORD.pack(*self._kill(slot)))

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

    def _kill(self, slot: bytes) -> ExitRecord:
        """Kill a child, if it still runs, and return its exit record."""
        child = self._children.pop(slot, FORK_FAILED)
        if child == FORK_FAILED:
            return FORK_FAILED, 0.0, 0
        os.kill(child, signal.SIGKILL)  # its number is not reused before it is reaped
        _pid, status, usage = os.wait4(child, 0)
        return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def _run_child(self, run: Run, descriptors: list[int]) -> None:
        """Run a child and exit, so that it never returns into the zygote's loop."""
        code = 1
        try:
            die_with_parent()
            if os.getppid() == self._pid:
                os.close(self._link.fileno())
                run(descriptors)
                code = 0
        except BaseException:  # noqa: BLE001  stderr is /dev/null unless debugging
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

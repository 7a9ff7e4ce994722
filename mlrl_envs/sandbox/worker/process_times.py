"""Times that the processes of a worker have run, and have waited for a processor.

The kernel counts both for every thread (`/proc/<pid>/task/<tid>/schedstat`; see sched-stats in the
kernel's documentation). A thread that is ready to run and has no processor waits; a thread that is
blocked or asleep neither runs nor waits. Linux only, and only if `/proc` shows the processes of the
same user (no `hidepid`); elsewhere all times are zero.
"""

# Workers do not import pathlib, to keep their processes small.
# ruff: noqa: PTH208

import contextlib
import os
from typing import NamedTuple

__all__ = ["ProcessTimes", "Times"]

NANOSECONDS = 1e-9
RUNNABLE = b"R"
UNREADABLE = (OSError, ValueError, IndexError)  # it has ended, or the file has another form
NOT_COUNTED = [b"0"] * 3  # also a thread that has not run yet


class ThreadTimes(NamedTuple):
    """Times of one thread.

    Attributes:
        counts: Content of the thread's `schedstat`; it changes whenever the thread gets or leaves a
            processor.
        waited: Seconds that it has waited for a processor, up to the last time it got one.
        since: Time at which it was first seen with these counts.
        runnable: Whether it runs or waits now.
    """

    counts: bytes
    waited: float
    since: float
    runnable: bool


class Times(NamedTuple):
    """Times of several processes at one moment.

    Attributes:
        now: The moment, as a value of `time.monotonic`.
        ran: Processor seconds of each process, with all its threads.
        threads: Times of the threads of each process.
    """

    now: float
    ran: dict[str, float]
    threads: dict[str, dict[str, ThreadTimes]]

    def ran_since(self, before: "Times") -> float:
        """Return the processor seconds of all processes together."""
        return sum(seconds - before.ran.get(pid, 0.0) for pid, seconds in self.ran.items())

    def waited_since(self, before: "Times") -> float:
        """Return the seconds that processes have waited for a processor, all of them together.

        Of each process, only the thread that waited most counts, so that a program cannot wait for
        many threads at once. A thread that has been runnable without getting a processor since the
        last look counts as waiting, although the kernel adds this time only when it runs again.
        """
        return sum(self._waited_of(pid, before) for pid in self.threads)

    def _waited_of(self, pid: str, before: "Times") -> float:
        threads, earlier = self.threads[pid], before.threads.get(pid, {})
        waits = [
            self.wait_of(thread) - (before.wait_of(earlier[tid]) if tid in earlier else 0.0)
            for tid, thread in threads.items()
        ]
        if not earlier.keys() <= threads.keys() and is_runnable(earlier) and is_runnable(threads):
            # The kernel forgets how long a thread waited when it ends.
            waits.append(self.now - before.now - self.ran[pid] + before.ran[pid])
        return max(waits, default=0.0)

    def wait_of(self, thread: ThreadTimes) -> float:
        """Return the seconds that one of the threads has waited until now."""
        return thread.waited + (self.now - thread.since if thread.runnable else 0.0)


def is_runnable(threads: dict[str, ThreadTimes]) -> bool:
    """Return whether a process with these threads runs or waits."""
    return any(thread.runnable for thread in threads.values())


class ProcessTimes:
    """Reads the times of all descendants of this process.

    It must be created before the worker enters its namespaces, where `/proc` is not visible, and
    closed in every process that runs untrusted code or forks such processes.
    """

    def __init__(self) -> None:
        try:
            self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # not on Linux
            self._proc = -1
        self._last = Times(0.0, {}, {})
        self._tick = 1.0 / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Release `/proc`; further reads return no processes."""
        if self._proc >= 0:
            os.close(self._proc)
        self._proc = -1

    def read(self, now: float) -> Times:
        """Return the times of all descendants.

        Args:
            now: Value of `time.monotonic`.
        """
        times = Times(now, {}, {})
        if self._proc >= 0:
            with contextlib.suppress(OSError):  # not a mount of procfs
                for pid in self._children(os.readlink("self", dir_fd=self._proc)):
                    self._add(pid, times)
        self._last = times
        return times

    def _add(self, pid: str, times: Times) -> None:
        """Add a process and its descendants, unless it ends meanwhile."""
        try:
            fields = self._read(f"{pid}/stat").rpartition(b")")[2].split()
            ran = (int(fields[11]) + int(fields[12])) * self._tick  # utime and stime, see proc(5)
            tids = self._list(f"{pid}/task")
        except UNREADABLE:
            return
        threads = {tid: self._thread(pid, tid, times.now) for tid in tids}
        times.ran[pid] = ran
        times.threads[pid] = {tid: each for tid, each in threads.items() if each is not None}
        for child in self._children(pid):
            self._add(child, times)

    def _thread(self, pid: str, tid: str, now: float) -> ThreadTimes | None:
        """Return the times of a thread; None if it has ended, or the kernel does not count."""
        try:
            counts = self._read(f"{pid}/task/{tid}/schedstat")
            state = self._read(f"{pid}/task/{tid}/stat").rpartition(b")")[2].split()[0]
            waited = int(counts.split()[1]) * NANOSECONDS
        except UNREADABLE:
            return None
        if counts.split() == NOT_COUNTED:
            return None
        before = self._last.threads.get(pid, {}).get(tid)
        unchanged = before is not None and before.runnable and before.counts == counts
        since = before.since if before is not None and unchanged else now
        return ThreadTimes(counts, waited, since, state == RUNNABLE)

    def _children(self, pid: str) -> list[str]:
        try:
            return self._read(f"{pid}/task/{pid}/children").decode().split()
        except OSError:
            return []

    def _list(self, path: str) -> list[str]:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._proc)
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def _read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY, dir_fd=self._proc)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)

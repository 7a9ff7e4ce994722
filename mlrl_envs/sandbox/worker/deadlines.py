"""Own time of a run and of its current step, which time limits are compared with.

Own time is the time in which the processes of a program run or sleep. Time in which one of them is
ready to run but waits for a processor does not count, so load on the machine cannot make a program
exceed its limits. On an idle machine own time is wall time. It is never less than the processor
time, and never more than the wall time:

    own = min(wall, max(processor time, wall - waiting time))

The bound by processor time keeps a program from gaining time with threads that wait for each other.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from mlrl_envs.sandbox.worker.process_times import Times

__all__ = ["LEAST_PAUSE", "POLL_SECONDS", "OverloadError", "OwnTime", "RequestDeadline"]

POLL_SECONDS = 0.1  # longest time between two looks
LEAST_PAUSE = 0.01  # own time may stand still just below a limit


class OverloadError(Exception):
    """A run was given up because of load on the machine; the message describes the load."""


class Period(NamedTuple):
    """A run or a step.

    Attributes:
        start: Its start, as a value of `time.monotonic`.
        before: Times at the last look before its start; waiting counts from here.
        after: Times at the first look after its start; processor time counts from here.
    """

    start: float
    before: Times
    after: Times

    def own(self, times: Times) -> float:
        """Return its own time up to a look."""
        wall = times.now - self.start
        waited = times.waited_since(self.before)
        return min(wall, max(times.ran_since(self.after), wall - waited))


class OwnTime:
    """Own time of one run and of its current step.

    Args:
        read: Returns the times of the processes of the run at a given moment.
        start: Start of the run, as a value of `time.monotonic`.
    """

    def __init__(self, read: Callable[[float], Times], start: float) -> None:
        self._read = read
        self._start = start
        self._run: Period | None = None
        self._step: Period | None = None
        self._last: Times | None = None

    def look(self, now: float, step: float) -> tuple[float, float]:
        """Return the own time of the run and of the current step, in seconds.

        It must be called several times during a step, because waiting is only seen from one look to
        the next.

        Args:
            now: Value of `time.monotonic`.
            step: Start of the current step.
        """
        times = self._read(now)
        before, self._last = self._last or times, times
        if self._run is None:
            self._run = Period(self._start, times, times)
        if self._step is None or self._step.start != step:
            self._step = Period(step, before, times)
        return self._run.own(times), self._step.own(times)

    def wall(self) -> float:
        """Return the seconds from the start of the run to the last look."""
        return self._last.now - self._start if self._last is not None else 0.0

    def waited(self) -> float:
        """Return the seconds that the processes waited, from the first to the last look."""
        if self._run is None or self._last is None:
            return 0.0
        return self._last.waited_since(self._run.before)

    def overload_text(self) -> str:
        """Return the message for a run that is given up because of load on the machine."""
        ran = 0.0
        if self._run is not None and self._last is not None:
            ran = self._last.ran_since(self._run.after)
        return (
            f"the machine is overloaded: in {self.wall():.1f} s a program ran for {ran:.1f} s and "
            f"waited {self.waited():.1f} s for a processor; run fewer processes on this machine, "
            "lower `workers`, or raise `Limits.max_stretch`"
        )


class RequestDeadline:
    """Deadline of one request to a process.

    Args:
        read: As for `OwnTime`.
        seconds: Limit of the request's own time.
        max_stretch: Largest factor by which load may extend it on the clock.
    """

    def __init__(self, read: Callable[[float], Times], seconds: float, max_stretch: float) -> None:
        self._start = time.monotonic()
        self._own = OwnTime(read, self._start)
        self._seconds = seconds
        self._longest = seconds * max_stretch
        self._next_look = self._start + min(seconds, POLL_SECONDS)

    def check(self) -> float:
        """Check the time that the request has taken, and return the seconds until the next check.

        Raises:
            TimeoutError: If its own time is used up.
            OverloadError: If it has taken too long because of load.
        """
        now = time.monotonic()
        if now < self._next_look:
            return self._next_look - now
        used, _ = self._own.look(now, self._start)
        if used >= self._seconds:
            raise TimeoutError
        if self._own.wall() >= self._longest:
            raise OverloadError(self._own.overload_text())
        pause = max(LEAST_PAUSE, min(self._seconds - used, POLL_SECONDS))
        self._next_look = now + pause
        return pause

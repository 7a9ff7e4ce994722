"""Own time of a run and of its current step, which time limits are compared with.

Own time is the time in which the processes of a program run or sleep. Time in which one of them is
ready to run but waits for a processor does not count, so load on the machine cannot make a program
exceed its limits. On an idle machine own time is wall time.

    own = min(wall, max(processor time, wall - waiting time, wall * share / SLACK))

The last two bounds keep a program from gaining time. It cannot wait for its own threads, because
their processor time counts. It can wait for other programs more than necessary, by giving the
processor away as soon as it gets it (`sched_yield`). `share` is therefore the part of a processor
that a trusted process gets, measured with short trials while the program waits: a program that
computes gets the same part, and one that gets much less has not used what was there.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from mlrl_envs.sandbox.worker.placement import ANY_CORE, Core, running_on
from mlrl_envs.sandbox.worker.process_times import Times

__all__ = ["LEAST_PAUSE", "POLL_SECONDS", "OverloadError", "OwnTime", "RequestDeadline"]

POLL_SECONDS = 0.1  # longest time between two looks
LEAST_PAUSE = 0.01  # own time may stand still just below a limit
TRIAL_EVERY = 1.0  # seconds of waiting from one trial to the next
TRIAL_SECONDS = 0.02  # processor time of a trial: several time slices of the scheduler
LONGEST_TRIAL = 1.0
SLACK = 4.0  # a trial is one more competitor, and load changes between trials


class OverloadError(Exception):
    """A run was given up because of load on the machine; the message describes the load."""


class Period(NamedTuple):
    """A run or a step.

    Attributes:
        start: Its start, as a value of `time.monotonic`.
        ran: Processor time before the first look after its start.
        waited: Waiting time before the last look before its start.
    """

    start: float
    ran: float
    waited: float


class OwnTime:
    """Own time of one run and of its current step.

    Args:
        read: Returns the times of the processes of the run at a given moment.
        start: Start of the run, as a value of `time.monotonic`.
        core: Core that the processes of the run are bound to.
    """

    def __init__(self, read: Callable[[float], Times], start: float, core: Core = ANY_CORE) -> None:
        self._read = read
        self._core = core
        self._run = Period(start, 0.0, 0.0)
        self._step: Period | None = None
        self._last: Times | None = None
        self._ran = self._waited = 0.0
        self._waited_at_trial = 0.0
        self._trial_ran = self._trial_wall = 0.0

    def look(self, now: float, step: float) -> tuple[float, float]:
        """Return the own time of the run and of the current step, in seconds.

        It must be called several times during a step, because waiting is only seen from one look to
        the next. It makes a trial if the program has waited for long since the last one.

        Args:
            now: Value of `time.monotonic`.
            step: Start of the current step.
        """
        waited_before = self._waited
        self._update(now)
        if self._step is None or self._step.start != step:
            self._step = Period(step, self._ran, waited_before)
        used = self._own(self._run), self._own(self._step)
        # The program may end during the trial, so the next look counts its time, if there is one.
        if self._waited - self._waited_at_trial >= TRIAL_EVERY:
            self._try_out()
        return used

    def wall(self) -> float:
        """Return the seconds from the start of the run to the last look."""
        return self._last.now - self._run.start if self._last is not None else 0.0

    def waited(self) -> float:
        """Return the seconds that the processes waited, from the first to the last look."""
        return self._waited

    def is_overload(self, seconds: float) -> bool:
        """Return whether a process that computes would have run for less than `seconds` so far.

        It makes a trial. What the program did has no influence on the answer.
        """
        self._try_out()
        return self.wall() * self._share() < seconds

    def overload_text(self) -> str:
        """Return the message for a run that is given up because of load on the machine."""
        return (
            f"the machine is overloaded: in {self.wall():.1f} s a program ran for "
            f"{self._ran:.1f} s and waited {self._waited:.1f} s for a processor, and a process "
            f"that computes gets {self._share():.0%} of one; run fewer processes on this "
            "machine, lower `workers`, or raise `Limits.max_stretch`"
        )

    def _own(self, period: Period) -> float:
        assert self._last is not None  # noqa: S101  for mypy
        wall = self._last.now - period.start
        waited, ran = self._waited - period.waited, self._ran - period.ran
        return min(wall, max(ran, wall - waited, wall * self._share() / SLACK))

    def _update(self, now: float) -> None:
        times = self._read(now)
        last = self._last or times
        self._ran += times.ran_since(last)
        self._waited += times.waited_since(last)
        # The kernel's lists of children are not always complete, so earlier entries are kept.
        self._last = Times(now, {**last.ran, **times.ran}, {**last.threads, **times.threads})

    def _try_out(self) -> None:
        """Compute for a moment on the core of the program, and note how long it took.

        Processor time of the program's processes counts as the trial's own, so that they cannot
        make the machine look overloaded.
        """
        ran_before, start = self._ran, time.monotonic()
        with running_on(self._core):
            used = spend(TRIAL_SECONDS)
        now = time.monotonic()
        self._update(now)
        self._trial_ran += used + self._ran - ran_before
        self._trial_wall += now - start
        self._waited_at_trial = self._waited

    def _share(self) -> float:
        """Return the part of a processor that trials got; 0 if there was none."""
        return min(1.0, self._trial_ran / self._trial_wall) if self._trial_wall else 0.0


def spend(seconds: float) -> float:
    """Use processor time for at most `LONGEST_TRIAL` on the clock, and return the time used."""
    begun, latest = time.process_time(), time.monotonic() + LONGEST_TRIAL
    while (used := time.process_time() - begun) < seconds and time.monotonic() < latest:
        pass
    return used


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
            if self._own.is_overload(self._seconds):
                raise OverloadError(self._own.overload_text())
            raise TimeoutError
        pause = max(LEAST_PAUSE, min(self._seconds - used, POLL_SECONDS))
        self._next_look = now + pause
        return pause

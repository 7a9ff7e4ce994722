"""State of a pool: its processes, and the calls that it has not answered yet."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlrl_learners.cluster.workers import Call

__all__ = ["PooledWorker", "Round", "Task", "choose_worker"]


@dataclass(eq=False)
class Round:
    """Calls of one thread, with the oldest version of weights that they ask for.

    Attributes:
        calls: The calls.
        version: The oldest version.
        keep_going: Whether the error of a call is its answer, and does not end the round.
        waiting: Numbers of the calls that no process has.
        alone: Numbers of those that are given to a process without other calls: a process with
            several calls ended, and any of them may be the reason.
        answers: Answers by the number of the call.
        failures: Failed attempts by the number of the call.
        error: What ends the round.
    """

    calls: Sequence[Call]
    version: int
    keep_going: bool
    waiting: deque[int]
    alone: set[int] = field(default_factory=set)
    answers: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    error: Exception | None = None


@dataclass(eq=False)
class PooledWorker:
    """A process.

    Attributes:
        handle: What the backend knows it by.
        calls: Kinds of the calls that it answers now.
        held: Round and number of a call for which it takes no other one.
        is_gone: Whether it was replaced.
    """

    handle: Any
    calls: list[type[Call]] = field(default_factory=list)
    held: tuple[Round, int] | None = None
    is_gone: bool = False


@dataclass(eq=False)
class Task:
    """A call that a process has, or the start of a process.

    Attributes:
        worker: The process.
        deadline: Time at which it is replaced.
        current: Round of the call; None for a start.
        number: Number of the call.
    """

    worker: PooledWorker
    deadline: float
    current: Round | None = None
    number: int = 0


def choose_worker(
    ready: Sequence[PooledWorker], current: Round, number: int, capacity: Mapping[type[Call], int]
) -> PooledWorker | None:
    """Return the process with the fewest calls that can take a call now; None if none can.

    Args:
        ready: Processes that have started, the longest idle one first.
        current: Round of the call.
        number: Number of the call.
        capacity: Number of calls of each kind that a process answers at the same time.
    """
    if number in current.alone:
        return _empty_worker(ready, (current, number))
    kind = type(current.calls[number])
    found = [w for w in ready if w.held is None and w.calls.count(kind) < capacity[kind]]
    return min(found, key=lambda each: len(each.calls), default=None)


def _empty_worker(ready: Sequence[PooledWorker], place: tuple[Round, int]) -> PooledWorker | None:
    """Return a process without calls; if there is none, one takes no other calls from now."""
    found = [w for w in ready if w.held == place] or [w for w in ready if w.held is None]
    if not found:
        return None
    worker = min(found, key=lambda each: len(each.calls))
    worker.held = place
    return None if worker.calls else worker

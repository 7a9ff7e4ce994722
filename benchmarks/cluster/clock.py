"""Clocks of `benchmarks.cluster.schedule`: the pool and the learner on simulated time."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlrl_learners.algorithms.team_players import MAX_GROUPS
from mlrl_learners.cluster.worker_pool import WorkerPool
from mlrl_learners.cluster.workers import Answer, BatchCall, Call
from mlrl_learners.config.ray import RayConfig

__all__ = ["VirtualWorkers", "in_groups", "rollout_seconds", "update_seconds"]

WARM_UP, UPDATES = 4, 12  # of a simulation
UPDATE = -1  # in place of a group, in events


@dataclass
class VirtualWorkers:
    """Processes of `WorkerPool` that answer after given seconds of a simulated clock.

    Attributes:
        seconds: Duration of each batch, by its number.
        now: The clock, in seconds.
    """

    seconds: Sequence[float]
    now: float = 0.0
    name: str = "sampler"
    limit: str = "job_seconds"
    capacity: Mapping[type[Call], int] = field(default_factory=lambda: {BatchCall: 1})
    _started: int = 0
    _ends: dict[int, float] = field(default_factory=dict)

    def put(self, weights: Any) -> Any:  # noqa: ANN401 - the interface of the pool
        """Return the weights."""
        return weights

    def start(self) -> int:
        """Return the number of a new process."""
        self._started += 1
        return self._started

    def ready(self, worker: int) -> int:  # noqa: ARG002
        """Return a task that has ended."""
        return self._task(0.0)

    def answer(self, worker: int, call: BatchCall, weights: Any) -> int:  # noqa: ANN401, ARG002
        """Return the task of a batch, whose key is its number."""
        return self._task(self.seconds[int(call.key)])

    def wait(self, tasks: Sequence[int], seconds: float) -> list[int]:  # noqa: ARG002
        """Set the clock to the end of the first task, and return it."""
        first = min(tasks, key=lambda task: (self._ends[task], task))
        self.now = max(self.now, self._ends[first])
        return [first]

    def result(self, task: int) -> Answer:
        """Return an empty answer."""
        return Answer(None, 0, [[]] if task else [])

    def stop(self, worker: int) -> None:
        """End a process."""

    def _task(self, seconds: float) -> int:
        task = len(self._ends)
        self._ends[task] = self.now + seconds
        return task


def rollout_seconds(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the simulated seconds of the rollouts of one update that wait at every level.

    Args:
        workers: Number of processes, W.
        batches: Seconds of each batch of each turn.
    """
    total = 0.0
    for seconds in batches:
        found = VirtualWorkers(seconds)
        pool = WorkerPool(found, RayConfig(enabled=True, samplers=workers))
        pool.answer([BatchCall(str(number), None, None) for number in range(len(seconds))])  # type: ignore[arg-type]  # no process reads the batch
        total += found.now
    return total


@dataclass
class _Schedule:
    """Updates on a simulated clock; iteration j samples once update j - 1 - lag has ended.

    The batch of the oldest iteration that waits gets the process that is free, as in the pool.

    Attributes:
        workers: Number of free processes.
        groups: Seconds of each batch of each turn of each group, of one iteration.
        lag: Iterations that sampling may be ahead.
        update: Seconds of an update.
        updates: Number of updates.
    """

    workers: int
    groups: Sequence[Sequence[Sequence[float]]]
    lag: int
    update: float
    updates: int
    ends: list[float] = field(default_factory=list)  # of updates
    _waiting: list[tuple[int, int, int, float]] = field(default_factory=list)  # heap of batches
    _events: list[tuple[float, int, int, int]] = field(default_factory=list)
    _left: dict[tuple[int, int], int] = field(default_factory=dict)  # batches of a turn
    _playing: dict[int, int] = field(default_factory=dict)  # groups of an iteration
    _rollouts_end: dict[int, float] = field(default_factory=dict)  # of those without an update
    _next: int = 0  # iteration whose update is the next one
    _free_at: float = 0.0  # the learner

    def run(self) -> list[float]:
        """Return the time at which each update ends."""
        for iteration in range(min(self.lag + 1, self.updates)):
            self._begin(iteration)
        now = 0.0
        while len(self.ends) < self.updates:
            while self.workers and self._waiting:
                iteration, turn, group, seconds = heapq.heappop(self._waiting)
                self.workers -= 1
                heapq.heappush(self._events, (now + seconds, iteration, turn, group))
            now, iteration, turn, group = heapq.heappop(self._events)
            if group == UPDATE:
                self.ends.append(now)
                if iteration + 1 + self.lag < self.updates:
                    self._begin(iteration + 1 + self.lag)
            else:
                self.workers += 1
                self._end(now, iteration, turn, group)
        return self.ends

    def _begin(self, iteration: int) -> None:
        self._playing[iteration] = len(self.groups)
        for group in range(len(self.groups)):
            self._ask(iteration, 0, group)

    def _ask(self, iteration: int, turn: int, group: int) -> None:
        batches = self.groups[group][turn]
        self._left[iteration, group] = len(batches)
        for seconds in batches:
            heapq.heappush(self._waiting, (iteration, turn, group, seconds))

    def _end(self, now: float, iteration: int, turn: int, group: int) -> None:
        self._left[iteration, group] -= 1
        if self._left[iteration, group]:
            return
        if turn + 1 < len(self.groups[group]):
            self._ask(iteration, turn + 1, group)
            return
        self._playing[iteration] -= 1
        if not self._playing[iteration]:
            self._ready(now, iteration)

    def _ready(self, now: float, iteration: int) -> None:
        """Start all updates, in order, whose rollouts are there."""
        self._rollouts_end[iteration] = now
        while self._next in self._rollouts_end:
            self._free_at = max(self._free_at, self._rollouts_end.pop(self._next)) + self.update
            heapq.heappush(self._events, (self._free_at, self._next, 0, UPDATE))
            self._next += 1


def update_seconds(
    workers: int, batches: Sequence[Sequence[float]], *, lag: int = 0, update: float = 0.0
) -> float:
    """Return the simulated seconds from one update to the next, in groups.

    Args:
        workers: Number of processes, W.
        batches: Seconds of each batch of each turn.
        lag: Iterations that sampling may be ahead.
        update: Seconds of an update.
    """
    updates = WARM_UP + UPDATES
    ends = _Schedule(workers, in_groups(batches), lag, update, updates).run()
    return (ends[-1] - ends[WARM_UP - 1]) / UPDATES


def in_groups(batches: Sequence[Sequence[float]]) -> list[list[list[float]]]:
    """Return the seconds of each batch of each turn of each group."""
    count = min(MAX_GROUPS, len(batches[0]))
    return [
        [list(each[k * len(each) // count : (k + 1) * len(each) // count]) for each in batches]
        for k in range(count)
    ]

"""Pool of processes that sample or play: deals calls, and replaces processes that end or hang.

The call of a process that ended or hung is given to another one. As answers do not depend on the
process, a run does not notice. A call that fails `max_attempts` times, or a pool without a
process that starts, ends in a `SamplerError`; it never becomes a reward.

The calls of several threads share the processes, those for the oldest weights first; one of the
threads waits for all of them.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlrl_learners.cluster.workers import Call, JobFailedError, Workers
from mlrl_learners.errors import SamplerError

if TYPE_CHECKING:
    from mlrl_learners.cluster.blueprint import PackedWeights
    from mlrl_learners.config.ray import RayConfig

__all__ = ["WorkerPool"]

LOOK_SECONDS = 0.05  # between two looks at calls that other threads have dealt


@dataclass(eq=False)
class _Round:
    """State of one call of `answer`, with the oldest version that it asks for."""

    calls: Sequence[Call]
    version: int
    waiting: deque[int]
    answers: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    error: Exception | None = None


@dataclass(eq=False)
class _Worker:
    """A process, and the number of calls that it could take now."""

    handle: Any
    free: int = 0
    is_gone: bool = False


@dataclass
class _Task:
    worker: _Worker
    call: tuple[_Round, int] | None  # and its number; None for the start of a process
    deadline: float


class WorkerPool:
    """Deals calls to processes.

    Args:
        workers: Starts processes and asks them.
        config: Number of processes, time limits and attempts.

    Attributes:
        replaced: Number of processes that were replaced.
    """

    def __init__(self, workers: Workers, config: "RayConfig") -> None:
        self._workers, self._config = workers, config
        self._weights: dict[tuple[str, int], Any] = {}
        self._tasks: dict[Any, _Task] = {}
        self._idle: list[_Worker] = []  # those that can take a call
        self._failed_starts, self._broken = 0, ""
        self._rounds: list[_Round] = []
        self._changed, self._is_waiting = threading.Condition(), False
        self.replaced = 0
        for _ in range(config.processes):
            self._start()

    @property
    def versions(self) -> set[int]:
        """Versions of the weights that are kept."""
        return {version for _, version in list(self._weights)}

    def publish(self, key: str, version: int, weights: "PackedWeights") -> None:
        """Keep the weights of a model under a version."""
        self._weights[key, version] = self._workers.put(weights)

    def adopt(self, version: int, weights: Mapping[str, Any]) -> None:
        """Keep references to weights, by model, that another pool has published."""
        self._weights |= {(key, version): each for key, each in weights.items()}

    def weights(self, key: str, version: int) -> "PackedWeights":
        """Return the weights of a model that are kept under a version."""
        return self._workers.result(self._weights[key, version])  # type: ignore[no-any-return]

    def keep_from(self, version: int) -> None:
        """Drop the weights of all earlier versions, which are kept until then."""
        self._weights = {at: kept for at, kept in self._weights.items() if at[1] >= version}

    def answer(self, calls: Sequence[Call]) -> list[Any]:
        """Return the answer to each call, in order.

        Raises:
            SamplerError: If a call failed too often, no process starts, or the weights of a
                version are not kept.
        """
        for key, version in {(key, call.version) for call in calls for key in call.weights}:
            if (key, version) not in self._weights:
                kept = sorted(self.versions)
                raise SamplerError(f"weights of version {version} are not kept, got {kept}")
        oldest = min((call.version or 0 for call in calls), default=0)
        current = _Round(calls, oldest, deque(range(len(calls))))
        with self._changed:
            self._rounds.append(current)
            self._rounds.sort(key=lambda each: each.version)  # what the learner waits for first
            try:
                while len(current.answers) < len(calls):
                    self._deal()
                    if current.error is None:
                        self._wait()
                    if current.error is not None:
                        raise current.error
            finally:
                self._rounds.remove(current)
                self._drop_calls(current)
                self._changed.notify_all()
        return [current.answers[number] for number in range(len(calls))]

    def close(self) -> None:
        """Kill all processes, and drop all weights."""
        self._broken = "the run has ended"  # wakes a thread that samples
        self._weights = {}
        known = {*self._idle, *(task.worker for task in list(self._tasks.values()))}
        for worker in known:
            self._workers.stop(worker.handle)

    def _deal(self) -> None:
        if self._broken:
            raise SamplerError(f"nothing can be sampled: {self._broken}")
        for current in self._rounds:
            while current.error is None and current.waiting and self._idle:
                number, worker = current.waiting.popleft(), self._take()
                call = current.calls[number]
                weights = {key: self._weights.get((key, call.version)) for key in call.weights}  # type: ignore[arg-type]
                try:
                    task = self._workers.answer(worker.handle, call, weights)
                except Exception as error:  # noqa: BLE001 - for the thread that asked
                    current.error = error
                    self._replace(worker)
                    continue
                deadline = time.monotonic() + getattr(self._config, call.limit)
                self._tasks[task] = _Task(worker, (current, number), deadline)

    def _take(self) -> _Worker:
        """Return the process that could take most calls, the longest idle one of several."""
        worker = max(self._idle, key=lambda each: each.free)
        worker.free -= 1
        if not worker.free:
            self._idle.remove(worker)
        return worker

    def _give_back(self, worker: _Worker, calls: int = 1) -> None:
        """Let a process take more calls, unless it was replaced."""
        if worker.is_gone:
            return
        worker.free += calls
        if worker.free == calls:
            self._idle.append(worker)

    def _wait(self) -> None:
        """Wait until something has changed: for the processes, or for the thread that does so."""
        if self._is_waiting:
            self._changed.wait(LOOK_SECONDS)
            return
        tasks = list(self._tasks)
        first = min(task.deadline for task in self._tasks.values())
        seconds = min(LOOK_SECONDS, max(0.0, first - time.monotonic()))
        self._is_waiting = True
        self._changed.release()
        try:
            ended = self._workers.wait(tasks, seconds)
        finally:
            self._changed.acquire()
            self._is_waiting = False
        self._collect(ended)
        self._changed.notify_all()

    def _collect(self, ended: Sequence[Any]) -> None:
        for done in ended:
            if done in self._tasks:  # else nobody waits for it any more
                self._end(done)
        if ended:
            return
        now = time.monotonic()
        for late in [task for task, each in self._tasks.items() if each.deadline <= now]:
            task = self._tasks.pop(late)
            self._replace(task.worker)
            self._count(task, "it did not answer in time")

    def _end(self, done: Any) -> None:  # noqa: ANN401
        task = self._tasks.pop(done)
        try:
            result = self._workers.result(done)
        except JobFailedError as error:
            if not error.is_alive or task.call is None:
                self._replace(task.worker)
            else:
                self._give_back(task.worker)
            self._count(task, str(error))
            return
        except Exception as error:
            if task.call is None:
                raise
            self._replace(task.worker)
            task.call[0].error = error  # for the thread that asked, not for the one that waits
            return
        if task.call is None:
            self._failed_starts = 0
            self._give_back(task.worker, self._workers.slots)
            return
        self._give_back(task.worker)
        current, number = task.call
        current.answers[number] = result

    def _count(self, task: _Task, reason: str) -> None:
        """Count a failed attempt, and give the call back unless it was the last one."""
        limit, name = self._config.max_attempts, self._workers.name
        if task.call is None:
            self._failed_starts += 1
            if self._failed_starts >= limit * self._config.processes:
                self._broken = (
                    f"no {name} could be started in {self._failed_starts} attempts: {reason}; "
                    "see the logs of Ray, and give ray.start_seconds a larger value if it was late"
                )
            return
        current, number = task.call
        failures = current.failures[number] = current.failures.get(number, 0) + 1
        if failures >= limit:
            call = current.calls[number]
            current.error = SamplerError(
                f"{call} failed in {failures} processes: {reason}; it may need more memory or a "
                f"larger ray.{call.limit}"
            )
        else:
            current.waiting.append(number)

    def _start(self) -> None:
        if self._broken:
            return
        worker = _Worker(self._workers.start())
        task = self._workers.ready(worker.handle)
        deadline = time.monotonic() + self._config.start_seconds
        self._tasks[task] = _Task(worker, None, deadline)

    def _replace(self, worker: _Worker) -> None:
        if worker.is_gone:  # for another of its calls
            return
        worker.is_gone = True
        if worker in self._idle:
            self._idle.remove(worker)
        self.replaced += 1
        self._workers.stop(worker.handle)
        self._start()

    def _drop_calls(self, current: _Round) -> None:
        """Replace the processes whose calls nobody waits for any more, after an error."""
        for done, task in list(self._tasks.items()):
            if task.call is not None and task.call[0] is current:
                self._replace(self._tasks.pop(done).worker)

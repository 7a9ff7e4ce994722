"""Pool of processes that sample or play: deals calls, and replaces processes that end or hang.

The call of a process that ended or hung is given to another one. As answers do not depend on the
process, a run does not notice. A call that fails `max_attempts` times, or a pool without a
process that starts, ends in a `SamplerError`; it never becomes a reward. If a process ends that has
several calls, each of them is repeated in a process of its own, so that none fails for another one.

The calls of several threads share the processes, those for the oldest weights first; one of the
threads waits for all of them.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlrl_learners.cluster.pool_state import PooledWorker, Round, Task, choose_worker
from mlrl_learners.cluster.workers import Call, JobFailedError, Workers
from mlrl_learners.errors import SamplerError

if TYPE_CHECKING:
    from mlrl_learners.cluster.blueprint import PackedWeights
    from mlrl_learners.config.ray import RayConfig

__all__ = ["WorkerPool"]

LOOK_SECONDS = 0.05  # between two looks at calls that other threads have dealt


class WorkerPool:
    """Deals calls to processes.

    Args:
        workers: Starts processes and asks them.
        config: Number of processes, time limits and attempts.

    Attributes:
        replaced: Number of processes that were replaced.
        broken: Why nothing can be answered any more; empty while something can.
    """

    def __init__(self, workers: Workers, config: "RayConfig") -> None:
        self._workers, self._config = workers, config
        self._weights: dict[tuple[str, int], Any] = {}
        self._tasks: dict[Any, Task] = {}
        self._ready: list[PooledWorker] = []  # the longest idle one first
        self._failed_starts = 0
        self._rounds: list[Round] = []
        self._changed, self._is_waiting = threading.Condition(), False
        self.replaced, self.broken = 0, ""
        for _ in range(config.processes):
            self._start()

    @property
    def versions(self) -> set[int]:
        """Versions of the weights that are kept."""
        with self._changed:
            return {version for _, version in self._weights}

    def publish(self, key: str, version: int, weights: "PackedWeights") -> None:
        """Keep the weights of a model under a version."""
        self.adopt(version, {key: self._workers.put(weights)})

    def adopt(self, version: int, weights: Mapping[str, Any]) -> None:
        """Keep references to weights, by model, that a pool has published."""
        with self._changed:
            self._weights |= {(key, version): each for key, each in weights.items()}

    def weights(self, key: str, version: int) -> "PackedWeights":
        """Return the weights of a model that are kept under a version."""
        return self._workers.result(self._weights[key, version])  # type: ignore[no-any-return]

    def keep_from(self, version: int) -> None:
        """Drop the weights of all earlier versions, which are kept until then."""
        with self._changed:
            self._weights = {at: kept for at, kept in self._weights.items() if at[1] >= version}

    def answer(self, calls: Sequence[Call], *, keep_going: bool = False) -> list[Any]:
        """Return the answer to each call, in order.

        Args:
            calls: The calls.
            keep_going: Whether the answer to a call that failed too often is its `SamplerError`,
                which is raised otherwise.

        Raises:
            SamplerError: If a call failed too often, no process starts, or the weights of a
                version are not kept.
        """
        for key, version in {(key, call.version) for call in calls for key in call.weights}:
            if (key, version) not in self._weights:
                kept = sorted(self.versions)
                raise SamplerError(f"weights of version {version} are not kept, got {kept}")
        oldest = min((call.version or 0 for call in calls), default=0)
        current = Round(calls, oldest, keep_going, deque(range(len(calls))))
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
        self.broken = "the run has ended"  # wakes a thread that samples
        self._weights = {}
        known = {*self._ready, *(task.worker for task in list(self._tasks.values()))}
        for worker in known:
            self._workers.stop(worker.handle)

    def _deal(self) -> None:
        if self.broken:
            raise SamplerError(f"nothing can be sampled: {self.broken}")
        for current in self._rounds:
            for number in list(current.waiting):
                worker = choose_worker(self._ready, current, number, self._workers.capacity)
                if worker is not None and current.error is None:
                    current.waiting.remove(number)
                    self._ask(worker, current, number)
                elif number not in current.alone:  # which wait before all others
                    break

    def _ask(self, worker: PooledWorker, current: Round, number: int) -> None:
        call = current.calls[number]
        weights = {key: self._weights.get((key, call.version)) for key in call.weights}  # type: ignore[arg-type]
        try:
            task = self._workers.answer(worker.handle, call, weights)
        except Exception as error:  # noqa: BLE001 - for the thread that asked
            current.error = error
            self._again(self._lose(worker))
            return
        worker.calls.append(type(call))
        deadline = time.monotonic() + getattr(self._config, self._workers.limit)
        self._tasks[task] = Task(worker, deadline, current, number)

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
        for worker in {task.worker for task in self._tasks.values() if task.deadline <= now}:
            tasks = self._lose(worker)
            late = [task for task in tasks if task.deadline <= now]
            self._fail(late, "it did not answer in time")
            self._again([task for task in tasks if task not in late])

    def _end(self, done: Any) -> None:  # noqa: ANN401
        task = self._tasks.pop(done)
        worker, current = task.worker, task.current
        try:
            result = self._workers.result(done)
        except JobFailedError as error:
            if error.is_alive and current is not None:
                self._free(task)
                self._count(task, str(error))
            else:
                self._fail([task, *self._lose(worker)], str(error))
            return
        except Exception as error:
            if current is None:
                raise
            current.error = error  # for the thread that asked, not for the one that waits
            self._again(self._lose(worker))
            return
        if current is None:
            self._failed_starts = 0
            self._ready.append(worker)
            return
        self._free(task)
        current.answers[task.number] = result

    def _free(self, task: Task) -> None:
        """Let a process take another call in place of one that has ended."""
        worker, current = task.worker, task.current
        assert current is not None  # noqa: S101 - no start
        worker.calls.remove(type(current.calls[task.number]))
        if worker.held == (current, task.number):
            worker.held = None
        self._ready.remove(worker)
        self._ready.append(worker)

    def _fail(self, tasks: Sequence[Task], reason: str) -> None:
        """Count a failed attempt, or repeat each of several calls without any other one."""
        if len(tasks) == 1:
            self._count(tasks[0], reason)
            return
        for task in tasks:
            if task.current is not None:
                task.current.alone.add(task.number)
        self._again(tasks)

    def _count(self, task: Task, reason: str) -> None:
        """Count a failed attempt, and give the call back unless it was the last one."""
        current, number = task.current, task.number
        if current is None:
            self._count_start(reason)
            return
        failures = current.failures[number] = current.failures.get(number, 0) + 1
        if failures < self._config.max_attempts:
            self._again([task])
            return
        error = SamplerError(
            f"{current.calls[number]} failed in {failures} processes: {reason}; it may need more "
            f"memory or a larger ray.{self._workers.limit}"
        )
        if current.keep_going:
            current.answers[number] = error
        else:
            current.error = error

    def _count_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= self._config.max_attempts * self._config.processes:
            self.broken = (
                f"no {self._workers.name} could be started in {self._failed_starts} attempts: "
                f"{reason}; see the logs of Ray, and give ray.start_seconds a larger value if it "
                "was late"
            )

    def _again(self, tasks: Sequence[Task]) -> None:
        """Let calls wait for a process; those that are to be alone wait before the others."""
        for task in tasks:
            if task.current is not None and task.number in task.current.alone:
                task.current.waiting.appendleft(task.number)
            elif task.current is not None:
                task.current.waiting.append(task.number)

    def _start(self) -> None:
        if self.broken:
            return
        worker = PooledWorker(self._workers.start())
        task = self._workers.ready(worker.handle)
        deadline = time.monotonic() + self._config.start_seconds
        self._tasks[task] = Task(worker, deadline)

    def _lose(self, worker: PooledWorker) -> list[Task]:
        """Replace a process, and return the tasks that it still has."""
        if worker.is_gone:
            return []
        worker.is_gone = True
        if worker in self._ready:
            self._ready.remove(worker)
        self.replaced += 1
        self._workers.stop(worker.handle)
        mine = [done for done, task in self._tasks.items() if task.worker is worker]
        lost = [self._tasks.pop(done) for done in mine]
        self._start()
        return lost

    def _drop_calls(self, current: Round) -> None:
        """Replace the processes whose calls nobody waits for any more, after an error."""
        for worker in {task.worker for task in self._tasks.values() if task.current is current}:
            self._again([task for task in self._lose(worker) if task.current is not current])
        for worker in self._ready:
            if worker.held is not None and worker.held[0] is current:
                worker.held = None

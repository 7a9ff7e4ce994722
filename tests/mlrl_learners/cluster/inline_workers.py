"""Workers of the pool in this process, with the faults that a test orders."""

import contextlib
from dataclasses import dataclass, field

from mlrl_learners.cluster import team_samplers
from mlrl_learners.cluster.sampler_worker import SamplerWorker
from mlrl_learners.cluster.workers import JobFailedError


@dataclass
class InlineWorkers:
    """Answers a task when its result is read; workers are numbers.

    `fault(worker, call)` returns None, "dies", "hangs" or "raises" for each task; the call of a
    start is None.
    """

    ray: object = None
    config: object = None
    sources: dict = field(default_factory=dict)
    fault: object = staticmethod(lambda worker, call: None)
    asked: list = field(default_factory=list)
    stopped: list = field(default_factory=list)
    started: int = 0

    def __post_init__(self):
        self._sampler = None
        self._tasks = {}

    def put(self, weights):
        return ("kept", weights)

    def start(self):
        self.started += 1
        return self.started

    def ready(self, worker):
        return self._task(worker, None, None)

    def answer(self, worker, call, weights):
        self.asked.append((worker, call.version))
        return self._task(worker, call, weights)

    def wait(self, tasks, seconds):
        return [each for each in tasks if self._tasks[each][3] != "hangs"][:1]

    def result(self, task):
        if isinstance(task, tuple):
            return task[1]
        worker, call, weights, fault = self._tasks.pop(task)
        if fault is not None:
            raise JobFailedError(f"worker {worker} {fault}", is_alive=fault == "raises")
        return None if call is None else self.sample(call, weights)

    def stop(self, worker):
        self.stopped.append(worker)

    def sample(self, call, weights):
        if self._sampler is None:
            self._sampler = SamplerWorker(self.sources, "cpu", 1)
        found = None if weights is None else weights[1]
        return self._sampler.answer(call.key, call.version, found, call.job)

    def _task(self, worker, call, weights):
        number = len(self.asked) + 1000 * self.started + 1_000_000 * len(self._tasks)
        while number in self._tasks:
            number += 1
        self._tasks[number] = (worker, call, weights, self.fault(worker, call))
        return number


def use(monkeypatch, fault=None):
    """Sample in this process in place of Ray; return the list of the workers of each run."""
    made = []

    def make(ray, config, sources):
        workers = InlineWorkers(ray, config, sources)
        if fault is not None:
            workers.fault = fault
        made.append(workers)
        return workers

    monkeypatch.setattr(team_samplers, "open_ray", contextlib.nullcontext)
    monkeypatch.setattr(team_samplers, "RayWorkers", make)
    return made

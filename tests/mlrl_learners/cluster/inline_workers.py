"""Workers of the pool in this process, with the faults that a test orders."""

import contextlib
import pickle
from dataclasses import dataclass, field, replace

from mlrl_envs.errors import InfraError
from mlrl_learners.cluster import team_samplers
from mlrl_learners.cluster.rollout_worker import RolloutWorker
from mlrl_learners.cluster.sampler_worker import SamplerWorker
from mlrl_learners.cluster.workers import BatchCall, BrokenWorkerError, JobFailedError, TreesCall


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
    name: str = "sampler"
    limit: str = "job_seconds"
    capacity: dict = field(default_factory=lambda: {BatchCall: 1})

    def __post_init__(self):
        self._sampler = None
        self._tasks = {}

    def put(self, weights):
        return ("kept", weights)

    def start(self):
        self.started += 1
        return self.started

    def ready(self, worker):
        return self._task(worker, None, {})

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
        found = weights[call.key][1] if weights else None
        return self._sampler.answer(call.key, call.version, found, call.job)

    def _task(self, worker, call, weights):
        number = len(self.asked) + 1000 * self.started + 1_000_000 * len(self._tasks)
        while number in self._tasks:
            number += 1
        self._tasks[number] = (worker, call, weights, self.fault(worker, call))
        return number


@dataclass
class InlinePlayers(InlineWorkers):
    """Processes of `ray.rollouts` in this one; what they are sent is pickled as by Ray.

    `sampler_fault(worker, call)` is the fault of their samplers.
    """

    name: str = "process of ray.rollouts"
    limit: str = "rollout_seconds"
    player: bytes = b""
    sampler_fault: object = staticmethod(lambda worker, call: None)
    players: dict = field(default_factory=dict)

    def result(self, task):
        if isinstance(task, tuple):
            return task[1]
        worker, call, weights, fault = self._tasks.pop(task)
        if fault is not None:
            raise JobFailedError(f"worker {worker} {fault}", is_alive=fault == "raises")
        if worker not in self.players:
            samplers = InlineWorkers(config=self.config, sources=self.sources)
            samplers.fault = self.sampler_fault
            share = self.config.samplers // self.config.rollouts
            own = replace(self.config, samplers=share, rollouts=0)
            self.players[worker] = RolloutWorker(samplers, own, *pickle.loads(self.player))
        try:
            return pickle.loads(pickle.dumps(self.ask(self.players[worker], call, weights)))
        except (InfraError, BrokenWorkerError) as error:
            is_alive = isinstance(error, InfraError)
            raise JobFailedError(f"{type(error).__name__}: {error}", is_alive=is_alive) from None

    def ask(self, process, call, weights):
        if call is None:
            return process.ready()
        asked = process.answer if isinstance(call, BatchCall) else process.play
        return asked(pickle.loads(pickle.dumps(call)), weights)


def use(monkeypatch, fault=None, sampler_fault=None):
    """Sample and play in this process in place of Ray; return the list of the workers of each run.

    With `ray.rollouts`, `fault` is of the processes that play, and `sampler_fault` of samplers.
    """
    made = []

    def make(ray, config, sources):
        workers = InlineWorkers(ray, config, sources)
        if fault is not None:
            workers.fault = fault
        made.append(workers)
        return workers

    def make_players(ray, config, sources, team, env):
        workers = InlinePlayers(ray, config, sources, player=pickle.dumps((team, env)))
        samplers = config.samplers // config.rollouts
        workers.capacity = {BatchCall: samplers, TreesCall: config.lag + 1}
        workers.fault = fault or workers.fault
        workers.sampler_fault = sampler_fault or workers.sampler_fault
        made.append(workers)
        return workers

    monkeypatch.setattr(team_samplers, "open_ray", contextlib.nullcontext)
    monkeypatch.setattr(team_samplers, "RayPlayers", make_players)
    monkeypatch.setattr(team_samplers, "RaySamplers", make)
    return made

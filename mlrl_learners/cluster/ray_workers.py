"""Processes that Ray starts for a pool: samplers, or players with samplers of their own.

Ray's own restarts and retries are off: the pool replaces processes and repeats calls, because it
must count the attempts at each call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlrl_learners.cluster.rollout_worker import EnvSource, RolloutWorker
from mlrl_learners.cluster.sampler_worker import ModelSource, SamplerWorker
from mlrl_learners.cluster.workers import (
    BatchCall,
    BrokenWorkerError,
    Call,
    JobFailedError,
    TreesCall,
)

if TYPE_CHECKING:
    from mlrl_learners.algorithms.team import Team
    from mlrl_learners.cluster.blueprint import PackedWeights
    from mlrl_learners.config.ray import RayConfig

__all__ = ["RayPlayers", "RaySamplers"]


class _RayWorkers:
    """What all kinds of processes have in common.

    Args:
        ray: The package `ray`, connected to a cluster.
        config: Threads and GPUs of samplers, and the number of processes.
    """

    def __init__(self, ray: Any, config: "RayConfig") -> None:  # noqa: ANN401 - an optional package
        self._ray, self._config = ray, config

    def put(self, weights: "PackedWeights") -> Any:  # noqa: ANN401
        """Return a reference to weights in the object store."""
        return self._ray.put(weights)

    def ready(self, worker: Any) -> Any:  # noqa: ANN401
        """Return the task that ends when a process is ready."""
        return worker.ready.remote()

    def wait(self, tasks: Sequence[Any], seconds: float) -> list[Any]:
        """Return the tasks that have ended, after at most so many seconds without one."""
        ended: list[Any]
        ended, _ = self._ray.wait(list(tasks), num_returns=1, timeout=seconds)
        return ended

    def result(self, task: Any) -> Any:  # noqa: ANN401
        """Return the result of a task that has ended.

        Raises:
            JobFailedError: If its process ended, or it raised an error.
        """
        try:
            return self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            is_alive = not isinstance(error, BrokenWorkerError)
            raise JobFailedError(_line(error), is_alive=is_alive) from None
        except self._ray.exceptions.RayError as error:
            raise JobFailedError(_line(error)) from None

    def stop(self, worker: Any) -> None:  # noqa: ANN401
        """Kill a process."""
        self._ray.kill(worker, no_restart=True)


class RaySamplers(_RayWorkers):
    """Processes that sample; see `Workers`.

    Args:
        ray: The package `ray`, connected to a cluster.
        config: Threads and GPUs of each process.
        sources: Models by their keys, or a reference to them.
    """

    name, limit = "sampler", "job_seconds"
    capacity: Mapping[type[Call], int] = {BatchCall: 1}

    def __init__(
        self,
        ray: Any,  # noqa: ANN401
        config: "RayConfig",
        sources: Any,  # noqa: ANN401 - a mapping, or a reference of Ray
    ) -> None:
        super().__init__(ray, config)
        self._sources = ray.put(dict(sources)) if isinstance(sources, Mapping) else sources
        options = _once(num_cpus=config.threads, num_gpus=config.gpus)
        self._actor = ray.remote(**options)(SamplerWorker)

    def start(self) -> Any:  # noqa: ANN401
        """Start a process and return its handle, before it is ready."""
        device = "cuda" if self._config.gpus else "cpu"
        return self._actor.remote(self._sources, device, self._config.threads)

    def answer(self, worker: Any, call: Call, weights: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Return the task of a batch; `weights` are references by model."""
        assert isinstance(call, BatchCall)  # noqa: S101 - samplers play no trees
        return worker.answer.remote(call.key, call.version, weights.get(call.key), call.job)


class RayPlayers(_RayWorkers):
    """Processes that play groups of trees, and pass batches on to their samplers; see `Workers`.

    Args:
        ray: The package `ray`, connected to a cluster.
        config: Number of processes and of samplers, with their threads and GPUs.
        sources: Models by their keys.
        team: What `Team.portable` returned.
        env: The environment.
    """

    name, limit = "process of ray.rollouts", "rollout_seconds"

    def __init__(
        self,
        ray: Any,  # noqa: ANN401
        config: "RayConfig",
        sources: Mapping[str, ModelSource],
        team: "Team",
        env: EnvSource,
    ) -> None:
        super().__init__(ray, config)
        samplers = config.samplers // config.rollouts
        # Batches of evaluations, as many as it can answer, and trees of each iteration.
        self.capacity: Mapping[type[Call], int] = {BatchCall: samplers, TreesCall: config.lag + 1}
        own = replace(config, samplers=samplers, rollouts=0, lag=0)
        # Inside a list, a reference is passed on without what it refers to.
        self._arguments = [ray.put(dict(sources))], own, ray.put((team, env))
        options = _once(num_cpus=1, max_concurrency=sum(self.capacity.values()))
        self._actor = ray.remote(**options)(_RayRolloutWorker)

    def start(self) -> Any:  # noqa: ANN401
        """Start a process and return its handle, before it is ready."""
        return self._actor.remote(*self._arguments)

    def answer(self, worker: Any, call: Call, weights: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Return the task of a call; `weights` are references by model."""
        asked = worker.answer if isinstance(call, BatchCall) else worker.play
        return asked.remote(call, dict(weights))  # without the weights themselves


class _RayRolloutWorker(RolloutWorker):
    """Plays in a process that Ray has started, and starts its samplers, which end with it.

    Args:
        sources: Reference to the models by their keys, in a list.
        config: Number of its samplers, with their threads and GPUs.
        player: What `Team.portable` returned, and the environment.
    """

    def __init__(
        self, sources: "list[Any]", config: "RayConfig", player: "tuple[Team, EnvSource]"
    ) -> None:
        import ray
        import torch

        torch.set_num_threads(1)
        super().__init__(RaySamplers(ray, config, sources[0]), config, *player)


def _once(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - of Ray
    """Return options of a process that Ray neither restarts nor asks again."""
    return {**options, "max_restarts": 0, "max_task_retries": 0}


def _line(error: Exception) -> str:
    """Return the last line of a message, which names the cause of an error in another process."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__

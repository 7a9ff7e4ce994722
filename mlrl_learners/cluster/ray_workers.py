"""Processes that Ray starts for the pool of samplers.

Ray's own restarts and retries are off: the pool replaces processes and repeats batches, because it
must count the attempts at each batch.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlrl_learners.cluster.sampler_worker import ModelSource, SamplerWorker
from mlrl_learners.cluster.workers import Call, JobFailedError

if TYPE_CHECKING:
    from mlrl_learners.cluster.blueprint import PackedWeights
    from mlrl_learners.config.ray import RayConfig

__all__ = ["RayWorkers"]


class RayWorkers:
    """Starts processes with Ray, and asks them.

    Args:
        ray: The package `ray`, connected to a cluster.
        config: Threads and GPUs of each process.
        sources: Models by their keys.
    """

    def __init__(
        self,
        ray: Any,  # noqa: ANN401 - an optional package
        config: "RayConfig",
        sources: Mapping[str, ModelSource],
    ) -> None:
        self._ray, self._config = ray, config
        self._sources = ray.put(dict(sources))
        self._actor = ray.remote(
            num_cpus=config.threads,
            num_gpus=config.gpus,
            max_restarts=0,
            max_task_retries=0,
        )(SamplerWorker)

    def put(self, weights: "PackedWeights") -> Any:  # noqa: ANN401
        """Return a reference to weights in the object store."""
        return self._ray.put(weights)

    def start(self) -> Any:  # noqa: ANN401
        """Start a process and return its handle, before it is ready."""
        device = "cuda" if self._config.gpus else "cpu"
        return self._actor.remote(self._sources, device, self._config.threads)

    def ready(self, worker: Any) -> Any:  # noqa: ANN401
        """Return the task that ends when a process is ready."""
        return worker.ready.remote()

    def answer(self, worker: Any, call: Call, weights: Any) -> Any:  # noqa: ANN401
        """Return the task of a batch; `weights` is a reference, or None."""
        return worker.answer.remote(call.key, call.version, weights, call.job)

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
            raise JobFailedError(_line(error), is_alive=True) from None
        except self._ray.exceptions.RayError as error:
            raise JobFailedError(_line(error)) from None

    def stop(self, worker: Any) -> None:  # noqa: ANN401
        """Kill a process."""
        self._ray.kill(worker, no_restart=True)


def _line(error: Exception) -> str:
    """Return the last line of a message, which names the cause of an error in another process."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__

"""Interface of a pool to the processes that sample: batches, answers and faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mlrl_learners.cluster.blueprint import PackedWeights
    from mlrl_learners.engine import SampledTokens
    from mlrl_learners.engine.jobs import SamplingJob

__all__ = ["Answer", "Call", "JobFailedError", "Workers"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers to a batch.

    Attributes:
        version: Version of the weights that sampled; None for a model that is not trained.
        process: Id of the process.
        samples: Answers to each prompt of the batch.
    """

    version: int | None
    process: int
    samples: "list[list[SampledTokens]]"


@dataclass(frozen=True, slots=True)
class Call:
    """One batch for one model.

    Attributes:
        key: The model.
        version: Version of its weights; None for a model that is not trained.
        job: The batch.
    """

    key: str
    version: int | None
    job: "SamplingJob"

    def __str__(self) -> str:
        """Describe the batch in an error message."""
        job, longest = self.job, max(map(len, self.job.prompts), default=0)
        found = f"a batch of {len(job.prompts)} prompts of up to {longest} tokens"
        return f"{found}, {job.num_samples} answers each, of version {self.version}"


class JobFailedError(Exception):
    """The process of a task ended, or the task raised an error.

    Args:
        reason: What happened, in one line.
        is_alive: Whether the process can go on.
    """

    def __init__(self, reason: str, *, is_alive: bool = False) -> None:
        super().__init__(reason)
        self.is_alive = is_alive


class Workers(Protocol):
    """How processes are started and asked; `mlrl_learners.cluster.ray_workers` asks Ray."""

    def put(self, weights: "PackedWeights") -> Any:  # noqa: ANN401 - a reference of the backend
        """Return a reference to weights that every process can read."""

    def start(self) -> Any:  # noqa: ANN401
        """Start a process and return its handle, before it is ready."""

    def ready(self, worker: Any) -> Any:  # noqa: ANN401
        """Return the task that ends when a process is ready."""

    def answer(self, worker: Any, call: Call, weights: Any) -> Any:  # noqa: ANN401
        """Return the task of a batch; `weights` is a reference, or None."""

    def wait(self, tasks: Sequence[Any], seconds: float) -> list[Any]:
        """Return the tasks that have ended, after at most so many seconds without one."""

    def result(self, task: Any) -> Any:  # noqa: ANN401
        """Return the result of a task that has ended.

        Raises:
            JobFailedError: If its process ended, or it raised an error.
        """

    def stop(self, worker: Any) -> None:  # noqa: ANN401
        """Kill a process."""

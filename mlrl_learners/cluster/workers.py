"""Interface of a pool to its processes: calls, answers and faults.

A call is a function of its arguments and of the weights of its version, so that it may be repeated
in any process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from mlrl_learners.cluster.blueprint import PackedWeights
    from mlrl_learners.cluster.packed_rollouts import Packed
    from mlrl_learners.engine import SampledTokens
    from mlrl_learners.engine.jobs import SamplingJob
    from mlrl_learners.play.groups import TreeGroup
    from mlrl_learners.types import RolloutConfig

__all__ = [
    "Answer",
    "BatchCall",
    "BrokenWorkerError",
    "Call",
    "JobFailedError",
    "TreesAnswer",
    "TreesCall",
    "Workers",
]


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
class BatchCall:
    """One batch of prompts for one model.

    Attributes:
        key: The model.
        version: Version of its weights; None for a model that is not trained.
        job: The batch.
        oldest: Oldest version that is kept.
    """

    key: str
    version: int | None
    job: "SamplingJob"
    oldest: int = 0

    @property
    def weights(self) -> tuple[str, ...]:
        """Models whose weights of `version` the call needs."""
        return () if self.version is None else (self.key,)

    def __str__(self) -> str:
        """Describe the batch in an error message."""
        job, longest = self.job, max(map(len, self.job.prompts), default=0)
        found = f"a batch of {len(job.prompts)} prompts of up to {longest} tokens"
        return f"{found}, {job.num_samples} answers each, of version {self.version}"


@dataclass(frozen=True, slots=True)
class TreesAnswer:
    """Rollouts of some groups of trees.

    Attributes:
        found: Result of each tree of each group, in order, packed.
        calls: Number of calls of `act` of each group's player, with those before.
        versions: Version of the weights of each batch.
        replaced: Samplers that the process has replaced since its last answer.
        error: What ended the rollouts, apart from infrastructure; None if nothing did.
    """

    found: "Packed" = ()
    calls: Sequence[int] = ()
    versions: Sequence[int] = ()
    replaced: int = 0
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class TreesCall:
    """Groups of rollout trees for a process that plays them.

    Attributes:
        weights: Models that are trained.
        version: Version of their weights.
        oldest: Oldest version that is kept.
        groups: The trees, in groups that do not wait for one another.
        config: Samples per node, joint mode and branching.
        env_id: Id of the environment, stored in the rollouts.
    """

    weights: tuple[str, ...]
    version: int
    oldest: int
    groups: "Sequence[TreeGroup]"
    config: "RolloutConfig"
    env_id: str

    def __str__(self) -> str:
        """Describe the groups in an error message."""
        count = sum(len(group.seeds) for group in self.groups)
        found = f"{count} rollout trees in {len(self.groups)} groups"
        return f"{found}, of version {self.version}"


Call: TypeAlias = BatchCall | TreesCall


class BrokenWorkerError(Exception):
    """A process cannot answer any more calls, and is to be replaced."""


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
    """How processes are started and asked; `mlrl_learners.cluster.ray_workers` asks Ray.

    Attributes:
        name: What a process is called in error messages.
        capacity: Number of calls of each kind that a process answers at the same time.
        limit: Option of the section `ray` that limits the seconds of a call.
    """

    name: str
    capacity: Mapping[type[Call], int]
    limit: str

    def put(self, weights: "PackedWeights") -> Any:  # noqa: ANN401 - a reference of the backend
        """Return a reference to weights that every process can read."""

    def start(self) -> Any:  # noqa: ANN401
        """Start a process and return its handle, before it is ready."""

    def ready(self, worker: Any) -> Any:  # noqa: ANN401
        """Return the task that ends when a process is ready."""

    def answer(self, worker: Any, call: Any, weights: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Return the task of a call; `weights` are references by model."""

    def wait(self, tasks: Sequence[Any], seconds: float) -> list[Any]:
        """Return the tasks that have ended, after at most so many seconds without one."""

    def result(self, task: Any) -> Any:  # noqa: ANN401
        """Return the result of a task that has ended, or the weights of a reference.

        Raises:
            JobFailedError: If its process ended, or it raised an error.
        """

    def stop(self, worker: Any) -> None:  # noqa: ANN401
        """Kill a process."""

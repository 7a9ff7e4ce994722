"""Sampler of one model of a team: sends its batches to a pool, for one version of the weights."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlrl_learners.cluster.worker_pool import WorkerPool
from mlrl_learners.cluster.workers import BatchCall
from mlrl_learners.engine import SampledTokens
from mlrl_learners.engine.jobs import SamplingJob

__all__ = ["ModelSampler", "SampledModel", "SampledVersion"]


@dataclass
class SampledVersion:
    """The version that a team samples from, and those that answered.

    Attributes:
        number: Version that is asked for.
        answered: Version of each batch since `take`.
    """

    number: int = 0
    answered: list[int] = field(default_factory=list)

    def take(self) -> list[int]:
        """Return the version of each batch, and forget them."""
        answered, self.answered = self.answered, []
        return answered


@dataclass(frozen=True)
class SampledModel:
    """A model as those that ask for its answers know it.

    Attributes:
        key: Its key in the pool.
        adapters: Names of its adapters, and None for the base alone.
        is_trained: Whether its weights have versions.
        is_on_cpu: Whether the trainer has it on a CPU, and so cuts batches as those of a CPU.
    """

    key: str
    adapters: frozenset[str | None]
    is_trained: bool
    is_on_cpu: bool


@dataclass(frozen=True)
class ModelSampler:
    """Answers the jobs of one model; see `mlrl_learners.engine.jobs.JobSampler`.

    Attributes:
        pool: Processes that answer.
        model: The model.
        version: The version that is asked for.
    """

    pool: WorkerPool
    model: SampledModel
    version: SampledVersion

    def covers(self, adapters: Sequence[str | None]) -> bool:
        """Return whether the processes have all of these adapters."""
        return self.model.adapters.issuperset(adapters)

    def sample(self, jobs: Sequence[SamplingJob]) -> list[list[list[SampledTokens]]]:
        """Return the answers to each prompt of each job, in order."""
        number = self.version.number if self.model.is_trained else None
        oldest = min(self.pool.versions, default=0)
        calls = [BatchCall(self.model.key, number, job, oldest) for job in jobs]
        answers = self.pool.answer(calls)
        self.version.answered += [each.version for each in answers if each.version is not None]
        return [answer.samples for answer in answers]

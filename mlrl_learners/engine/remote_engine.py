"""Engine without weights, for a process that plays while others sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.engine.decoding_task import MIN_BATCHES, DecodingTask
from mlrl_learners.engine.drawn_tokens import EndOfText, SampledTokens
from mlrl_learners.engine.jobs import JobSampler, sample_jobs
from mlrl_learners.engine.sampling import SamplingConfig

__all__ = ["RemoteEngine"]


@dataclass(eq=False)
class RemoteEngine:
    """Samples as an `Engine` whose attribute `remote` is set; it can do nothing else.

    Attributes:
        remote: Answers all prompts.
        is_on_cpu: Whether batches are cut as those of a CPU.
    """

    remote: JobSampler
    is_on_cpu: bool

    @property
    def model(self) -> Any:  # noqa: ANN401 - in place of a model, which is compared by identity
        """The engine itself, as it has no model."""
        return self

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        sampling: SamplingConfig,
        *,
        eos_ids: Sequence[int],
        seeds: Sequence[int] | None,
        max_rows: int = 64,
        min_batches: int = MIN_BATCHES,
        adapters: Sequence[str | None] | None = None,
        texts: EndOfText | None = None,
    ) -> list[list[SampledTokens]]:
        """Sample `num_samples` answers to each prompt; see `Engine.sample`."""
        task = DecodingTask(
            prompts,
            num_samples,
            sampling,
            eos_ids,
            max_rows,
            texts=texts,
            seeds=seeds,
            min_batches=min_batches,
        )
        names = adapters or [None] * len(prompts)
        return sample_jobs(self.remote, task, names, is_on_cpu=self.is_on_cpu)

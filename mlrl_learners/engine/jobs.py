"""Sampling jobs: batches of prompts that are cut here and answered by a copy of the engine.

The answers to a job follow from it and from the weights alone, so that it may be repeated anywhere:
it holds the seed of every prompt and all that rounding depends on, which are the batch, the rows
that weights are laid out for, and the adapters that are computed together.

Not covered: who answers jobs (`mlrl_learners.cluster`), and sharded weights.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from mlrl_learners.engine.adapter_layers import AdapterLayers
from mlrl_learners.engine.adapter_rows import AdapterRows
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.decoding import generate_batch
from mlrl_learners.engine.decoding_task import DecodingTask, cut_task
from mlrl_learners.engine.drawn_tokens import EndOfText, SampledTokens
from mlrl_learners.engine.sampling import SamplingConfig
from mlrl_learners.engine.selection import ExecutionMode, Precision, ReaderName, autocast

__all__ = ["Decodes", "JobSampler", "SamplingJob", "answer_job", "decoding", "sample_jobs"]


@dataclass(frozen=True, slots=True)
class SamplingJob:
    """One batch of prompts.

    Attributes:
        prompts: Token ids of each prompt, longest first.
        num_samples: Answers per prompt, G.
        sampling: Length, temperature and truncation.
        eos_ids: Ids that end an answer.
        seeds: Seed of the random numbers of each prompt; None decodes greedily.
        adapters: Adapter of each prompt; None for the base alone.
        mixed: Adapters of all batches of the call, which are computed together.
        num_rows: Rows that the weights are laid out for.
        has_stops: Whether the texts of `sampling.stop` end answers.
    """

    prompts: Sequence[Sequence[int]]
    num_samples: int
    sampling: SamplingConfig
    eos_ids: Sequence[int]
    seeds: Sequence[int] | None
    adapters: Sequence[str | None]
    mixed: Sequence[str]
    num_rows: int
    has_stops: bool


class Decodes(Protocol):
    """The part of `Engine` that decodes; see there for the attributes."""

    model: Any
    mode: ExecutionMode
    precision: Precision
    recorder: GraphRecorder | None
    adapters: AdapterLayers | None

    @property
    def device(self) -> torch.device:
        """Device of the weights."""


class JobSampler(Protocol):
    """Answers jobs in place of an engine."""

    def covers(self, adapters: Sequence[str | None]) -> bool:
        """Return whether it has all of these adapters; None is the base alone."""

    def sample(self, jobs: Sequence[SamplingJob]) -> list[list[list[SampledTokens]]]:
        """Return the answers to each prompt of each job, in order."""


def sample_jobs(
    sampler: JobSampler, task: DecodingTask, adapters: Sequence[str | None], *, is_on_cpu: bool
) -> list[list[SampledTokens]]:
    """Cut a task into jobs as one process cuts it into batches, and return all answers in order.

    Args:
        sampler: Answers the jobs.
        task: Prompts and options; its own `adapters` are not read.
        adapters: Adapter of each prompt; None for the base alone.
        is_on_cpu: Whether batches are cut as those of a CPU.
    """
    batches, num_rows = cut_task(task, is_on_cpu=is_on_cpu)
    mixed = tuple(dict.fromkeys(name for name in adapters if name is not None))
    jobs = [
        SamplingJob(
            prompts=tuple(tuple(task.prompts[i]) for i in batch),
            num_samples=task.num_samples,
            sampling=task.sampling,
            eos_ids=tuple(task.eos_ids),
            seeds=None if task.seeds is None else tuple(task.seeds[i] for i in batch),
            adapters=tuple(adapters[i] for i in batch),
            mixed=mixed,
            num_rows=num_rows,
            has_stops=task.texts is not None,
        )
        for batch in batches
    ]
    answers: dict[int, list[SampledTokens]] = {}
    for batch, found in zip(batches, sampler.sample(jobs), strict=True):
        answers.update(zip(batch, found, strict=True))
    return [answers[number] for number in range(len(task.prompts))]


@torch.no_grad()
def answer_job(
    engine: Decodes, job: SamplingJob, texts: EndOfText | None
) -> list[list[SampledTokens]]:
    """Return the answers to each prompt of a job.

    Args:
        engine: Engine with the weights that the job is for.
        job: The batch.
        texts: Recognises the stop texts; None without any.
    """
    with decoding(engine, job.adapters, job.mixed) as rows:
        task = DecodingTask(
            job.prompts,
            job.num_samples,
            job.sampling,
            job.eos_ids,
            adapters=rows,
            texts=texts,
            seeds=job.seeds,
        )
        return generate_batch(
            engine.model,
            task,
            reader=engine.mode.reader,
            recorder=engine.recorder,
            num_rows=job.num_rows,
        )


@contextlib.contextmanager
def decoding(
    engine: Decodes, adapters: Sequence[str | None], mixed: Sequence[str] | None = None
) -> Iterator[AdapterRows | None]:
    """Set up decoding by an engine: mode, precision, and the adapters of rows.

    Args:
        engine: The engine.
        adapters: Adapter of each row; None for the base alone.
        mixed: Adapters that are computed together; by default those of the rows.
    """
    engine.model.eval()
    if engine.recorder is not None and not engine.recorder.usable:
        reason = "steps could not be recorded as CUDA graphs"
        reader: ReaderName = "llama" if engine.mode.reader == "llama" else "module"
        engine.mode, engine.recorder = replace(engine.mode, reader=reader, reason=reason), None
    with autocast(engine.device, engine.precision), contextlib.ExitStack() as stack:
        rows = None
        if engine.adapters is not None:
            rows = stack.enter_context(engine.adapters.active_by_row(adapters, mixed))
        yield rows

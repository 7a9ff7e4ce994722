"""Sampling task of a model, and the batches that its prompts are cut into.

Rounding errors depend on the shape of a batch. On a CPU batches are therefore cut before they are
shared out, so that an answer does not depend on the number of processes. On GPUs prompts are shared
out first, which keeps all of them busy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from mlrl_learners.engine.adapter_rows import AdapterRows
from mlrl_learners.engine.drawn_tokens import EndOfText
from mlrl_learners.engine.sampling import Draw, SamplingConfig
from mlrl_learners.processes.work_sharing import share

__all__ = [
    "MIN_BATCHES",
    "DecodingTask",
    "TokenWatch",
    "cut_task",
    "layout_rows",
    "our_batches",
    "prompts_per_batch",
]

# Fewest rows of a CPU batch if there are enough, and number of batches that larger ones are cut to.
MIN_ROWS = 32
MIN_BATCHES = 4


class TokenWatch(Protocol):
    """Sees every token when it is drawn; with it, decoding waits for the device at each step."""

    def see(self, answers: Sequence[tuple[int, int]], draw: Draw, logits: Tensor) -> None:
        """Take one token of each of several answers.

        Args:
            answers: Numbers of the prompt and of its answer, of B answers that go on.
            draw: Their tokens, `[B]`; without nuclei.
            logits: What the tokens were drawn from, before temperature, `[B, V]`.
        """


@dataclass(frozen=True)
class DecodingTask:
    """What is sampled from a model.

    Attributes:
        prompts: Token ids of each prompt, at least one each.
        num_samples: Answers per prompt, G.
        sampling: Length, temperature and truncation.
        eos_ids: Ids that end an answer; the sampled one is part of it.
        max_rows: Most rows in a batch.
        adapters: Adapter of each prompt, for a model with adapters.
        texts: Recognises texts that end an answer; None for none.
        seeds: Seed of the random numbers of each prompt; None decodes greedily.
        watch: Sees every token when it is drawn; None for nobody.
        min_batches: Number of batches that a CPU cuts larger tasks to.
    """

    prompts: Sequence[Sequence[int]]
    num_samples: int
    sampling: SamplingConfig
    eos_ids: Sequence[int]
    max_rows: int = 64
    adapters: AdapterRows | None = None
    texts: EndOfText | None = None
    seeds: Sequence[int] | None = None
    watch: TokenWatch | None = None
    min_batches: int = MIN_BATCHES

    @property
    def num_rows(self) -> int:
        """Number of answers to all prompts."""
        return len(self.prompts) * self.num_samples

    def part(self, numbers: list[int]) -> "DecodingTask":
        """Return the task of some prompts."""
        return replace(
            self,
            prompts=[self.prompts[i] for i in numbers],
            adapters=self.adapters[numbers] if self.adapters else None,
            seeds=None if self.seeds is None else [self.seeds[i] for i in numbers],
        )

    def uniforms(self) -> Tensor | None:
        """Return numbers in [0, 1) to draw tokens with, `[rows, max_new_tokens]`."""
        if self.seeds is None:
            return None
        length, generator = self.sampling.max_new_tokens, torch.Generator()
        numbers = torch.empty(len(self.seeds), self.num_samples, length)
        for row, seed in zip(numbers, self.seeds, strict=True):
            row.uniform_(generator=generator.manual_seed(seed))
        return numbers.flatten(0, 1)


def cut_task(task: DecodingTask, *, is_on_cpu: bool) -> tuple[list[list[int]], int]:
    """Return the batches of one process as prompt numbers, and the rows weights are laid out for.

    Args:
        task: Prompts and options.
        is_on_cpu: Whether batches are cut as those of a CPU.
    """
    size = prompts_per_batch(task, is_on_cpu=is_on_cpu)
    return _prompt_batches(task.prompts, range(len(task.prompts)), size), layout_rows(task, size)


def prompts_per_batch(task: DecodingTask, *, is_on_cpu: bool) -> int:
    """Return the largest number of prompts in a batch."""
    max_rows, least = task.max_rows, -(-task.num_rows // task.min_batches)
    if is_on_cpu:  # several processes need several batches to share out
        max_rows = min(max_rows, max(MIN_ROWS, least))
    return max(1, max_rows // task.num_samples)


def layout_rows(task: DecodingTask, size: int) -> int:
    """Return the rows of a full batch: the layout of weights, and rounding, depends on them."""
    return min(size * task.num_samples, task.num_rows)


def our_batches(task: DecodingTask, size: int, *, cut_first: bool) -> list[list[int]]:
    """Return the batches of at most `size` prompt numbers that this process answers."""
    prompts, written = task.prompts, task.num_samples * task.sampling.max_new_tokens
    if not cut_first:
        ours = share([len(prompt) + written for prompt in prompts])
        return _prompt_batches(prompts, ours, size)
    batches = _prompt_batches(prompts, range(len(prompts)), size)
    costs = [len(batch) * (len(prompts[batch[0]]) + written) for batch in batches]
    return [batches[number] for number in share(costs)]


def _prompt_batches(
    prompts: Sequence[Sequence[int]], numbers: Sequence[int], size: int
) -> list[list[int]]:
    """Return prompt numbers in batches of similar lengths, longest first."""
    by_length = sorted(numbers, key=lambda i: (-len(prompts[i]), i))
    return [by_length[start : start + size] for start in range(0, len(by_length), size)]

"""Decoding loop: samples several answers to each of many prompts.

A prompt is read once for all of its samples; ended rows leave the batch; the random numbers of a
prompt depend on its own seed alone. Several processes answer a share of the prompts each. How the
model is read is the reader's part (`selection.open_reader`).

Rounding errors depend on the shape of a batch. On a CPU batches are therefore cut before they are
shared out, so that an answer does not depend on the number of processes. On GPUs prompts are shared
out first, which keeps all of them busy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from mlrl_learners.engine import sharding
from mlrl_learners.engine.adapter_rows import AdapterRows
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.drawn_tokens import DrawnTokens, EndOfText, SampledTokens
from mlrl_learners.engine.reader import Reader
from mlrl_learners.engine.sampling import Draw, SamplingConfig, draw_tokens, greedy_tokens
from mlrl_learners.engine.selection import ReaderName, open_reader
from mlrl_learners.processes.work_sharing import gather, share

__all__ = ["DecodingTask", "TokenWatch", "generate"]


class TokenWatch(Protocol):
    """Sees every token when it is drawn; with it, decoding waits for the device at each step."""

    def see(self, answers: Sequence[tuple[int, int]], draw: Draw, logits: Tensor) -> None:
        """Take one token of each of several answers.

        Args:
            answers: Numbers of the prompt and of its answer, of B answers that go on.
            draw: Their tokens, `[B]`; without nuclei.
            logits: What the tokens were drawn from, before temperature, `[B, V]`.
        """


# Fewest rows of a CPU batch if there are enough, and number of batches that larger ones are cut to.
MIN_ROWS = 32
MIN_BATCHES = 4


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


@torch.no_grad()
def generate(
    model: nn.Module,
    task: DecodingTask,
    *,
    reader: ReaderName,
    recorder: GraphRecorder | None = None,
) -> list[list[SampledTokens]]:
    """Sample G answers to each prompt.

    Args:
        model: A `transformers` causal language model.
        task: Prompts and options.
        reader: Which reader runs the model.
        recorder: Records the steps of the reader `static`.

    Returns:
        For each prompt, in order, its answers.
    """
    is_on_cpu = next(model.parameters()).device.type == "cpu"
    size = _prompts_per_batch(task, is_on_cpu)
    batches = _our_batches(task, size, cut_first=is_on_cpu)
    # The layout of weights depends on it, so it must be equal in all processes that decode.
    num_rows = min(size * task.num_samples, task.num_rows) if batches else 0
    length = task.sampling.max_new_tokens
    with open_reader(model, reader, recorder, num_rows=num_rows, max_tokens=length) as opened:
        answers = gather(_answer(model, opened, task, batches))
    return [answers[number] for number in range(len(task.prompts))]


def _answer(
    model: nn.Module, reader: Reader[Any], task: DecodingTask, batches: Sequence[list[int]]
) -> dict[int, list[SampledTokens]]:
    """Return the answers to this process's batches of prompts by the numbers of the prompts."""
    # Sharded weights: every process runs as many batches as the others.
    num_idle = sharding.agree_max(model, len(batches)) - len(batches)
    answers: dict[int, list[SampledTokens]] = {}
    for batch in batches:
        part = task.part(batch)
        rows = _Decoder(model, reader, part, batch).run(part.uniforms())
        for position, prompt in enumerate(batch):
            start = position * task.num_samples
            answers[prompt] = rows[start : start + task.num_samples]
    for _ in range(num_idle):
        alone = replace(task, prompts=[[0]], num_samples=1, adapters=None)
        _Decoder(model, reader, alone, [0]).idle()
    return answers


def _prompts_per_batch(task: DecodingTask, is_on_cpu: bool) -> int:
    max_rows = task.max_rows
    if is_on_cpu:  # several processes need several batches to share out
        max_rows = min(max_rows, max(MIN_ROWS, -(-task.num_rows // MIN_BATCHES)))
    return max(1, max_rows // task.num_samples)


def _our_batches(task: DecodingTask, size: int, *, cut_first: bool) -> list[list[int]]:
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


class _Decoder:
    """State of the rows of one batch, R at first, of which B have not left it."""

    def __init__(
        self, model: nn.Module, reader: Reader[Any], task: DecodingTask, numbers: Sequence[int]
    ) -> None:
        self.model, self.reader, self.sampling = model, reader, task.sampling
        prompts, num_samples, adapters = task.prompts, task.num_samples, task.adapters
        self.texts, self.watch = task.texts, task.watch
        self.places = [(prompt, sample) for prompt in numbers for sample in range(num_samples)]
        self.device = next(model.parameters()).device
        self.cache = reader.cache()
        self._use_adapters(adapters)
        self.logits = self._read_prompts(prompts, num_samples)
        self._use_adapters(adapters.repeat(num_samples) if adapters else None)
        num_rows = len(prompts) * num_samples
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        self.positions = lengths.repeat_interleave(num_samples)  # [B], of the next tokens
        self.mask = self._padding_mask(lengths).repeat_interleave(num_samples, 0)
        self.is_padded = bool((lengths != lengths.max()).any())
        self.width = int(lengths.max())
        self.rows = torch.arange(num_rows, device=self.device)  # [B], numbers of the rows
        self.ended = torch.zeros(num_rows, dtype=torch.bool, device=self.device)  # [B]
        eos_ids = torch.tensor(list(task.eos_ids), device=self.device)
        self.drawn = DrawnTokens(num_rows, task.sampling.max_new_tokens, eos_ids)

    def idle(self) -> None:
        """Take part in the forward passes of processes that have rows to decode."""
        self.ended.fill_(True)
        self.run(None)

    def run(self, uniforms: Tensor | None) -> list[SampledTokens]:
        """Decode until all rows have ended or reached `max_new_tokens`.

        Args:
            uniforms: Numbers in [0, 1), `[R, max_new_tokens]`; None decodes greedily.
        """
        uniforms = None if uniforms is None else uniforms.to(self.device)
        for step in range(self.sampling.max_new_tokens):
            if uniforms is None:
                draw = greedy_tokens(self.logits, self.sampling)
            else:
                draw = draw_tokens(self.logits, uniforms[self.rows, step], self.sampling)
            if self.watch is not None:
                self._show(self.watch, draw)
            self.ended = self.drawn.add(step, self.rows, self.ended, draw)
            if self.texts is not None:
                self.ended = self.drawn.end_by_text(step, self.rows, self.ended, self.texts)
            tokens = draw.tokens
            if step + 1 == self.sampling.max_new_tokens:
                break
            if step % self.reader.look_steps == 0:
                if sharding.agree_all(self.model, bool(self.ended.all())):
                    break
                tokens = self._remove_ended(tokens)
            self._read_tokens(step, tokens)
        return self.drawn.answers()

    def _read_prompts(self, prompts: Sequence[Sequence[int]], num_samples: int) -> Tensor:
        """Read each prompt once, for G rows each; return next-token logits, `[B, V]`."""
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        width = int(lengths.max())
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=self.device)
        mask = torch.arange(width, device=self.device) >= (width - lengths)[:, None]
        positions = (mask.long().cumsum(-1) - 1).clamp(min=0)
        logits = self.reader.read(ids, mask.long(), positions, self.cache)
        if num_samples > 1:
            self.cache.batch_repeat_interleave(num_samples)
        return logits.repeat_interleave(num_samples, 0)

    def _show(self, watch: TokenWatch, draw: Draw) -> None:
        """Show the tokens of rows that have not ended."""
        alive = torch.nonzero(~self.ended).squeeze(-1)
        answers = [self.places[row] for row in self.rows[alive].tolist()]
        watch.see(answers, Draw(draw.tokens[alive], draw.logprobs[alive]), self.logits[alive])

    def _read_tokens(self, step: int, tokens: Tensor) -> None:
        """Read one token per row, `[B]`."""
        mask = self.mask[:, : self.width + step + 1] if self.is_padded else None
        self.logits = self.reader.read(tokens[:, None], mask, self.positions[:, None], self.cache)
        self.positions = self.positions + 1

    def _remove_ended(self, tokens: Tensor) -> Tensor:
        """Remove ended rows if enough of them have ended; return the tokens of the others."""
        share = self.reader.max_alive_share(self.cache)
        if not share:
            return tokens
        alive = torch.nonzero(~self.ended).squeeze(-1)
        if not len(alive) or len(alive) > share * len(self.rows):
            return tokens
        self.positions, self.mask = self.positions[alive], self.mask[alive]
        self.rows, self.ended = self.rows[alive], self.ended[alive]
        self._use_adapters(self.adapters[alive] if self.adapters else None)
        self.cache.batch_select_indices(alive)
        return tokens[alive]

    def _padding_mask(self, lengths: Tensor) -> Tensor:
        """Return the padding mask of prompts and all later tokens, `[prompts, width + new]`."""
        width = int(lengths.max())
        columns = torch.arange(width + self.sampling.max_new_tokens, device=self.device)
        return (columns >= (width - lengths)[:, None]).long()

    def _use_adapters(self, adapters: AdapterRows | None) -> None:
        """Compute the rows of the next forward passes with these adapters."""
        self.adapters = adapters
        if adapters is not None:
            adapters.use()

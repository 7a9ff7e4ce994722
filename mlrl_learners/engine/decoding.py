"""Decoding loop: samples several answers to each of many prompts.

A prompt is read once for all of its samples; ended rows leave the batch; the random numbers of a
prompt depend on its own seed alone. Several processes answer a share of the prompts each. How
prompts become batches is in `mlrl_learners.engine.decoding_task`, how the model is read is the
reader's part (`selection.open_reader`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.engine import sharding
from mlrl_learners.engine.adapter_rows import AdapterRows
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.decoding_task import (
    DecodingTask,
    TokenWatch,
    layout_rows,
    our_batches,
    prompts_per_batch,
)
from mlrl_learners.engine.drawn_tokens import DrawnTokens, SampledTokens
from mlrl_learners.engine.reader import Reader
from mlrl_learners.engine.sampling import Draw
from mlrl_learners.engine.selection import ReaderName, open_reader
from mlrl_learners.engine.token_drawer import TokenDrawer
from mlrl_learners.processes.work_sharing import gather

__all__ = ["generate", "generate_batch"]


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
        recorder: Records steps at fixed shapes, and the draws of their tokens.

    Returns:
        For each prompt, in order, its answers.
    """
    is_on_cpu = next(model.parameters()).device.type == "cpu"
    size = prompts_per_batch(task, is_on_cpu=is_on_cpu)
    batches = our_batches(task, size, cut_first=is_on_cpu)
    num_rows = layout_rows(task, size) if batches else 0
    length = task.sampling.max_new_tokens
    with open_reader(model, reader, recorder, num_rows=num_rows, max_tokens=length) as opened:
        answers = gather(_answer(model, opened, recorder, task, batches))
    return [answers[number] for number in range(len(task.prompts))]


@torch.no_grad()
def generate_batch(
    model: nn.Module,
    task: DecodingTask,
    *,
    reader: ReaderName,
    recorder: GraphRecorder | None,
    num_rows: int,
) -> list[list[SampledTokens]]:
    """Sample as `generate` does, in one batch of `cut_task` and without other processes.

    Args:
        model: A `transformers` causal language model, not sharded.
        task: The prompts of one batch, in its order.
        reader: Which reader runs the model.
        recorder: Records steps at fixed shapes, and the draws of their tokens.
        num_rows: Rows that the weights are laid out for.
    """
    length = task.sampling.max_new_tokens
    with open_reader(model, reader, recorder, num_rows=num_rows, max_tokens=length) as opened:
        answers = _answer(model, opened, recorder, task, [list(range(len(task.prompts)))])
    return [answers[number] for number in range(len(task.prompts))]


def _answer(
    model: nn.Module,
    reader: Reader[Any],
    recorder: GraphRecorder | None,
    task: DecodingTask,
    batches: Sequence[list[int]],
) -> dict[int, list[SampledTokens]]:
    """Return the answers to this process's batches of prompts by the numbers of the prompts."""
    # Sharded weights: every process runs as many batches as the others.
    num_idle = sharding.agree_max(model, len(batches)) - len(batches)
    answers: dict[int, list[SampledTokens]] = {}
    for batch in batches:
        part = task.part(batch)
        drawer = TokenDrawer(task.sampling, recorder)
        rows = _Decoder(model, reader, drawer, part, batch).run(part.uniforms())
        for position, prompt in enumerate(batch):
            start = position * task.num_samples
            answers[prompt] = rows[start : start + task.num_samples]
    for _ in range(num_idle):
        alone = replace(task, prompts=[[0]], num_samples=1, adapters=None)
        _Decoder(model, reader, TokenDrawer(task.sampling, None), alone, [0]).idle()
    return answers


class _Decoder:
    """State of the rows of one batch, R at first, of which B have not left it."""

    def __init__(
        self,
        model: nn.Module,
        reader: Reader[Any],
        drawer: TokenDrawer,
        task: DecodingTask,
        numbers: Sequence[int],
    ) -> None:
        self.model, self.reader, self.drawer = model, reader, drawer
        self.sampling = task.sampling
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
        uniforms = None if uniforms is None else uniforms.t().contiguous().to(self.device)
        for step in range(self.sampling.max_new_tokens):
            numbers = None if uniforms is None else uniforms[step][self.rows]
            draw = self.drawer.draw(self.logits, numbers)
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
        self.drawer.forget()
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

"""Sampling many answers to many prompts from one model, in as few forward passes as possible.

Each prompt is read once and its keys and values serve all of its samples; rows that have ended
leave the batch; a row's tokens do not depend on the rows beside it. Several processes answer a
share of the prompts each: all draw the same random numbers, for all prompts. On a GPU a step is
recorded once and replayed, and nobody waits for it to see whether rows have ended but now and then;
on a CPU models of a known layout are read in fewer operations.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from mlrl_learners.engine.adapter_rows import AdapterRows
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.drawn_tokens import DrawnTokens, SampledTokens
from mlrl_learners.engine.frozen_casts import frozen_casts
from mlrl_learners.engine.growing_cache import grow_in_place
from mlrl_learners.engine.llama_reader import PlainLlama
from mlrl_learners.engine.onednn_layers import packed_weights
from mlrl_learners.engine.sampling import SamplingConfig, draw_tokens, greedy_tokens
from mlrl_learners.engine.sharding import is_sharded
from mlrl_learners.engine.static_reader import ROOM_TOKENS, StaticStep, is_plain, without_plans
from mlrl_learners.engine.uncached_reader import Rereader
from mlrl_learners.processes.work_sharing import exchange, spread

__all__ = ["SampledTokens", "generate"]

ALIVE_SHARE = 0.75  # compacting copies the cache: worth it once a quarter of the rows have ended
LOOK_STEPS = 16  # how often a GPU is waited for to see which rows have ended; divides ROOM_TOKENS


@torch.no_grad()
def generate(
    model: Any,  # noqa: ANN401 - transformers ships no types
    prompts: Sequence[Sequence[int]],
    num_samples: int,
    sampling: SamplingConfig,
    *,
    eos_ids: Sequence[int],
    generator: torch.Generator | None,
    max_rows: int = 64,
    adapters: AdapterRows | None = None,
    recorder: GraphRecorder | None = None,
    plain: bool = False,
    rereads: bool = False,
) -> list[list[SampledTokens]]:
    """Draw `num_samples` answers to each prompt.

    Args:
        model: A `transformers` causal language model.
        prompts: Token ids of each prompt, at least one each.
        num_samples: Answers a prompt, G.
        sampling: How tokens are drawn.
        eos_ids: Ids that end an answer; the one drawn is part of it.
        generator: CPU generator that the uniform numbers come from; None answers greedily.
        max_rows: Most rows that are decoded at once.
        adapters: Which adapter answers each prompt, where the model has several.
        recorder: What makes graphs of steps, for a model that `decodes_statically`.
        plain: Whether the model `reads_plainly`: then it does, unless it has adapters or graphs.
        rereads: Whether each step reads whole sequences: the model has no cache to go on from.

    Returns:
        For each prompt, in order, its answers.
    """
    uniforms = None
    if generator is not None:
        shape = (len(prompts), num_samples, sampling.max_new_tokens)
        uniforms = torch.rand(shape, generator=generator)

    def answer(ours: list[int]) -> dict[int, list[SampledTokens]]:
        answers: dict[int, list[SampledTokens]] = {}
        batches = _prompt_batches(prompts, ours, max(1, max_rows // num_samples))
        if is_sharded(model):  # all processes must compute as often
            batches += [[]] * (max(exchange(len(batches))) - len(batches))
        num_rows = min(max_rows, len(ours) * num_samples)
        reader: PlainLlama | Rereader | None = Rereader(model) if rereads else None
        if plain and ours and not adapters and not recorder and PlainLlama.fits(model):
            reader = PlainLlama(model, num_rows)
        fast = _fast_weights(model, num_rows) if reader is None else contextlib.nullcontext()
        with fast, without_plans():
            for batch in batches:
                if not batch:
                    _Decoder(model, [[0]], 1, sampling, eos_ids, plain=reader).idle()
                    continue
                rows = _Decoder(
                    model,
                    [prompts[i] for i in batch],
                    num_samples,
                    sampling,
                    eos_ids,
                    adapters[batch] if adapters else None,
                    recorder,
                    reader,
                ).run(None if uniforms is None else uniforms[batch].flatten(0, 1))
                for position, prompt in enumerate(batch):
                    answers[prompt] = rows[position * num_samples : (position + 1) * num_samples]
        return answers

    written = num_samples * sampling.max_new_tokens
    return spread([len(prompt) + written for prompt in prompts], answer)


def _prompt_batches(
    prompts: Sequence[Sequence[int]], ours: Sequence[int], size: int
) -> list[list[int]]:
    by_length = sorted(ours, key=lambda i: (-len(prompts[i]), i))
    return [by_length[start : start + size] for start in range(0, len(by_length), size)]


def _fast_weights(model: torch.nn.Module, num_rows: int) -> contextlib.AbstractContextManager[None]:
    """Lay weights out for many steps, where they are whole."""
    if next(model.parameters()).device.type == "cpu":
        return packed_weights(model, num_rows)
    return contextlib.nullcontext() if is_sharded(model) else frozen_casts(model)


def _look_steps(device: torch.device) -> int:
    return 1 if device.type == "cpu" else LOOK_STEPS


class _Decoder:
    """Decodes one batch; the state of the rows that are still being written."""

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        sampling: SamplingConfig,
        eos_ids: Sequence[int],
        adapters: AdapterRows | None = None,
        recorder: GraphRecorder | None = None,
        plain: PlainLlama | Rereader | None = None,
    ) -> None:
        self.model, self.plain = model, plain
        self.sampling = sampling
        self.device = next(model.parameters()).device
        self.eos_ids = torch.tensor(list(eos_ids), device=self.device)
        self.adapters = adapters
        self._choose_adapters()
        self.cache: Any = DynamicCache(config=model.config) if plain is None else plain.cache()
        self.logits = self._read_prompts(prompts, num_samples)
        self.adapters = adapters.repeat(num_samples) if adapters else None
        self._choose_adapters()
        num_rows = len(prompts) * num_samples
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        self.positions = lengths.repeat_interleave(num_samples)  # [B], of the next token
        self.mask = self._mask(lengths).repeat_interleave(num_samples, 0)  # [B, width + new]
        self.padded = bool((lengths != lengths.max()).any())
        self.width = int(lengths.max())
        self.rows = torch.arange(num_rows, device=self.device)  # [B], who is in the batch
        self.ended = torch.zeros(num_rows, dtype=torch.bool, device=self.device)  # [B]
        self.drawn = DrawnTokens(num_rows, sampling.max_new_tokens, self.eos_ids)
        self.static = self._static_step(recorder)
        if self.static is None and isinstance(self.cache, DynamicCache):
            self.cache = grow_in_place(self.cache)

    def idle(self) -> None:
        """Keep step with processes that have something to decode."""
        self.ended.fill_(True)
        self.run(None)

    def run(self, uniforms: Tensor | None) -> list[SampledTokens]:
        """Decode until every row has ended or is as long as it may be."""
        uniforms = None if uniforms is None else uniforms.to(self.device)
        for step in range(self.sampling.max_new_tokens):
            if uniforms is None:
                draw = greedy_tokens(self.logits, self.sampling)
            else:
                draw = draw_tokens(self.logits, uniforms[self.rows, step], self.sampling)
            self.ended = self.drawn.add(step, self.rows, self.ended, draw)
            tokens = draw.tokens
            if step + 1 == self.sampling.max_new_tokens:
                break
            if step % _look_steps(self.device) == 0:
                if self._is_over():
                    break
                tokens = self._compact(step, tokens)
            self._advance(step, tokens)
        return self.drawn.answers()

    def _is_over(self) -> bool:
        """Return whether all rows have ended, in all processes where weights are in pieces."""
        over = bool(self.ended.all())
        return all(exchange(over)) if is_sharded(self.model) else over

    def _read_prompts(self, prompts: Sequence[Sequence[int]], num_samples: int) -> Tensor:
        """Read every prompt once, for G rows each; return next-token logits, `[B, V]`."""
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        width = int(lengths.max())
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=self.device)
        mask = torch.arange(width, device=self.device) >= (width - lengths)[:, None]
        positions = (mask.long().cumsum(-1) - 1).clamp(min=0)
        alike = self.plain is not None and bool(mask.all())
        logits = self._read(ids, None if alike else mask.long(), positions)
        if num_samples > 1:
            self.cache.batch_repeat_interleave(num_samples)
        return logits.repeat_interleave(num_samples, 0)

    def _read(self, ids: Tensor, mask: Tensor | None, positions: Tensor) -> Tensor:
        """Read tokens, `[B, S]`, behind those in the cache; return the logits after the last."""
        if self.plain is not None:
            return self.plain.read(ids, mask, positions, self.cache)
        logits: Tensor = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        return logits

    def _static_step(self, recorder: GraphRecorder | None) -> StaticStep | None:
        """Return how tokens are read where that can be recorded; it takes the cache over."""
        if recorder is None or not recorder.usable or is_sharded(self.model):
            return None
        if not is_plain(self.cache):
            return None
        seen = self.mask[:, : self.width].bool()
        room = min(ROOM_TOKENS, self.sampling.max_new_tokens)
        return StaticStep(
            self.model, self.cache, seen, self.positions, room=room, recorder=recorder
        )

    def _mask(self, lengths: Tensor) -> Tensor:
        width = int(lengths.max())
        columns = torch.arange(width + self.sampling.max_new_tokens, device=self.device)
        return (columns >= (width - lengths)[:, None]).long()

    def _compact(self, step: int, tokens: Tensor) -> Tensor:
        """Let ended rows leave once enough of them have; return the tokens of those that stay."""
        if self.static is not None and self.static.room:
            return tokens
        alive = torch.nonzero(~self.ended).squeeze(-1)
        if not len(alive) or (not self.static and len(alive) > ALIVE_SHARE * len(self.rows)):
            return tokens
        self.positions, self.mask = self.positions[alive], self.mask[alive]
        self.rows, self.ended = self.rows[alive], self.ended[alive]
        self.adapters = self.adapters[alive] if self.adapters else None
        self._choose_adapters()
        if self.static is None:
            self.cache.batch_select_indices(alive)
        else:
            left = self.sampling.max_new_tokens - step - 1
            self.static.rebuild(alive, room=min(ROOM_TOKENS, left))
        return tokens[alive]

    def _choose_adapters(self) -> None:
        """Let the model compute each row of the batch with its own adapter from here on."""
        if self.adapters is not None:
            self.adapters.use()

    def _advance(self, step: int, tokens: Tensor) -> None:
        """Read one token a row."""
        if self.static is not None:
            self.logits = self.static(tokens)
            return
        mask = self.mask[:, : self.width + step + 1] if self.padded else None
        self.logits = self._read(tokens[:, None], mask, self.positions[:, None])
        self.positions = self.positions + 1

"""Execution of one causal language model: sampling, log-probabilities and hidden states.

The engine alone knows devices, kernels, KV caches, CUDA graphs, autocast, adapters and shards. It
does not know tokenizers, prompts' texts or losses; `mlrl_learners.policies.Policy` builds on it.
"""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.engine import sharding
from mlrl_learners.engine.adapter_layers import AdapterLayers
from mlrl_learners.engine.batching import Packing, micro_batches, num_tokens
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.decoding import generate
from mlrl_learners.engine.decoding_task import MIN_BATCHES, DecodingTask, TokenWatch
from mlrl_learners.engine.drawn_tokens import EndOfText, SampledTokens
from mlrl_learners.engine.dropout import use_evaluation_mode
from mlrl_learners.engine.jobs import JobSampler, decoding, sample_jobs
from mlrl_learners.engine.logprobs import (
    logprobs_and_states,
    packing_of,
    token_states,
)
from mlrl_learners.engine.model_checks import enable_checkpointing
from mlrl_learners.engine.preparation import prepare
from mlrl_learners.engine.sampling import SamplingConfig
from mlrl_learners.engine.selection import Precision, ReaderName, autocast, select_mode
from mlrl_learners.engine.token_rows import TokenRow
from mlrl_learners.processes.work_sharing import deal, world

__all__ = ["Engine"]

IDLE = TokenRow((0,), (0,))  # read by a process without rows, so that shards stay in step


class Engine:
    """Executes a causal language model.

    The model that is passed is not modified: the engine works on a copy of its modules that shares
    its parameters. Training through the engine therefore updates the weights of both.

    Args:
        model: A `transformers` causal language model.
        precision: `"bf16"` and `"fp16"` compute under autocast; the weights keep their type. On a
            processor without bfloat16 products, `"bf16"` computes in float32, with a warning.
        gradient_checkpointing: Recompute activations in the backward pass to save memory.

    Attributes:
        model: The prepared copy: without dropout, with faster layers, in evaluation mode.
        mode: The execution path that was chosen, and why; `print(engine.mode)` describes it.
        recorder: Records steps at fixed shapes and draws; None for other readers.
        adapters: LoRA adapters on the frozen weights; None before `freeze`.
        family: Class of the model, which sharding changes.
        remote: Samples in place of this engine, unless tokens are watched; None for nobody.

    Raises:
        ConfigError: If `precision` is unknown, or the model cannot be trained here.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - transformers ships no types
        *,
        precision: Precision = "float32",
        gradient_checkpointing: bool = False,
    ) -> None:
        self.model = prepare(model)
        self.gradient_checkpointing = gradient_checkpointing
        self.adapters: AdapterLayers | None = None
        self.mode = select_mode(self.model, precision)
        self.precision = self.mode.precision
        is_fixed = self.mode.reader in ("static", "llama") and self.device.type == "cuda"
        self.recorder = GraphRecorder(self.device) if is_fixed else None
        if gradient_checkpointing:
            enable_checkpointing(self.model)
        self.family = type(self.model)
        self.remote: JobSampler | None = None

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def uses_float16(self) -> bool:
        """Whether activations or weights are in float16, whose gradients underflow unscaled."""
        types = {weight.dtype for weight in self.model.parameters()}
        return self.precision == "fp16" or torch.float16 in types

    def override(
        self,
        *,
        reader: ReaderName | None = None,
        packs_prompts: bool | None = None,
        recorder: GraphRecorder | None = None,
    ) -> None:
        """Execute on another path than the chosen one, to compare paths.

        Args:
            reader: Name of the reader, see `ExecutionMode`; None keeps it.
            packs_prompts: Whether tokens that begin several rows are read once; None keeps it.
            recorder: Records steps at fixed shapes; None for none. Only with `reader`.
        """
        packs = self.mode.packs_prompts if packs_prompts is None else packs_prompts
        self.mode = replace(self.mode, packs_prompts=packs, reason="set by override")
        if reader is not None:
            self.mode, self.recorder = replace(self.mode, reader=reader), recorder

    def shard(self, device: str) -> None:
        """Shard the weights over all processes.

        Args:
            device: Device of this process's shards; `"auto"` for a GPU if there is one.
        """
        sharding.shard(self.model, device)
        if sharding.is_sharded(self.model) and self.mode.reader != "uncached":
            self.mode = replace(self.mode, reader="module", reason="the weights are sharded")
            self.recorder = None

    def freeze(self, *, rank: int, alpha: int, targets: Sequence[str]) -> AdapterLayers:
        """Freeze the weights, and return the layers that adapters can be added to.

        Args:
            rank: Rank of every adapter.
            alpha: Adapters are scaled by alpha / rank.
            targets: Ends of layers' names; empty for all linear layers except the head.
        """
        self.adapters = AdapterLayers(self.model, rank=rank, alpha=alpha, targets=targets)
        if self.mode.reader == "llama":
            reason = "adapters are computed in hooks of the model's layers"
            reader: ReaderName = "static" if self.device.type == "cuda" else "module"
            self.mode = replace(self.mode, reader=reader, reason=reason)
        if self.gradient_checkpointing:
            contexts = self.adapters.checkpoint_contexts
            self.model.gradient_checkpointing_enable(
                {"use_reentrant": False, "context_fn": contexts}
            )
        return self.adapters

    def parameters(self, adapter: str | None = None) -> list[nn.Parameter]:
        """Return what can be trained: all weights, or those of an adapter once frozen."""
        if self.adapters is None:
            return [weight for weight in self.model.parameters() if weight.requires_grad]
        return [] if adapter is None else self.adapters.parameters(adapter)

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
        watch: TokenWatch | None = None,
    ) -> list[list[SampledTokens]]:
        """Sample `num_samples` answers to each prompt.

        Args:
            prompts: Token ids of each, at least one.
            num_samples: Answers per prompt, G.
            sampling: Length, temperature and truncation.
            eos_ids: Ids that end an answer.
            seeds: Seed of the random numbers of each prompt; None decodes greedily.
            max_rows: Most answers that are decoded at once.
            min_batches: Number of batches that a CPU cuts larger tasks to.
            adapters: Adapter of each prompt; None for the base alone.
            texts: Recognises texts that end an answer; None for none.
            watch: Sees every token when it is drawn; None for nobody.
        """
        names = adapters or [None] * len(prompts)
        task = DecodingTask(prompts, num_samples, sampling, eos_ids, max_rows)
        task = replace(task, texts=texts, seeds=seeds, watch=watch, min_batches=min_batches)
        if self.remote is not None and watch is None and self.remote.covers(names):
            return sample_jobs(self.remote, task, names, is_on_cpu=self.device.type == "cpu")
        with decoding(self, names) as rows:
            task = replace(task, adapters=rows)
            return generate(self.model, task, reader=self.mode.reader, recorder=self.recorder)

    def logprobs(
        self,
        rows: Sequence[TokenRow],
        *,
        temperature: float,
        with_entropy: bool = True,
        entropy_gradient: bool = False,
        every_state: bool = False,
        adapter: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute log-probabilities, entropies and states in one forward pass.

        Args:
            rows: Prompts and completions.
            temperature: Divisor of the logits, above 0.
            with_entropy: Compute entropies; zeros otherwise.
            entropy_gradient: Whether entropies have a gradient.
            every_state: Whether states are those before every completion token.
            adapter: The active adapter; None for the base alone.

        Returns:
            Log-probabilities and entropies of all completion tokens, float32 `[T]` each, and the
            decoder's states at the last prompt tokens, `[B, H]`, or before every token, `[T, H]`.
        """
        read = rows or [IDLE]
        with self._forward(adapter):
            logprobs, entropy, states = sharding.compute(
                self.model,
                lambda: logprobs_and_states(
                    self.model,
                    read,
                    temperature=temperature,
                    with_entropy=with_entropy,
                    entropy_gradient=entropy_gradient,
                    every_state=every_state,
                    packed=self.mode.packs_prompts,
                ),
            )
        return (logprobs, entropy, states) if rows else (logprobs[:0], entropy[:0], states[:0])

    def prompt_states(
        self, prompts: Sequence[Sequence[int]], *, adapter: str | None = None
    ) -> Tensor:
        """Return the decoder's states at the last tokens of the prompts, `[B, H]`."""
        rows = [TokenRow(prompt, (0,)) for prompt in prompts]
        return self.token_states(rows, adapter=adapter)

    def token_states(self, rows: Sequence[TokenRow], *, adapter: str | None = None) -> Tensor:
        """Return the decoder's states before each completion token, `[T, H]`."""
        decoder, packed = self.model.get_decoder(), self.mode.packs_prompts
        with self._forward(adapter):
            states = sharding.compute(
                self.model, lambda: token_states(decoder, rows or [IDLE], packed=packed)
            )
        return states[: sum(len(row.token_ids) for row in rows)]

    def micro_batches(self, rows: Sequence[TokenRow], max_tokens: int) -> Iterator[list[int]]:
        """Yield row numbers of forward passes of at most `max_tokens` tokens each.

        With several processes each batch is yielded in exactly one of them. With sharded weights
        all processes yield the same number of batches, some of them empty. Batches to train on are
        from `mlrl_learners.policies.gradient_batches`.
        """
        batches, packing = self.cut(rows, max_tokens), self._packing()
        is_alone = world().size == 1
        shares = deal([1 if is_alone else num_tokens(rows, each, packing) for each in batches])
        ours = shares[world().rank]
        yield from (batches[i] for i in ours)
        if sharding.is_sharded(self.model):
            yield from ([] for _ in range(len(ours), max(map(len, shares))))

    def cut(self, rows: Sequence[TokenRow], max_tokens: int) -> list[list[int]]:
        """Return the `micro_batches` of all processes, the same in every process."""
        return list(micro_batches(rows, max_tokens, self._packing()))

    def _packing(self) -> Packing:
        return packing_of(self.model.get_decoder(), packed=self.mode.packs_prompts)

    def frozen_copy(self) -> "Engine":
        """Return an engine on a frozen copy of the weights, sharded if these are."""
        if not sharding.is_sharded(self.model):
            model = copy.deepcopy(self.model).requires_grad_(False)
            return Engine(model, precision=self.precision)
        model = sharding.whole_copy(self.model, self.family)
        copied = Engine(model.requires_grad_(False), precision=self.precision)
        copied.shard(self.device.type)
        return copied

    def save(self, folder: Path) -> None:
        """Write all weights into a folder that `transformers` loads; every process must call it."""
        sharding.save_weights(self.model, folder)

    def load(self, folder: Path) -> None:
        """Read the weights that `save` wrote.

        Raises:
            CheckpointError: If the folder holds no weights, or those of another model.
        """
        sharding.read_weights(self.model, self.family, folder)

    @contextlib.contextmanager
    def _forward(self, adapter: str | None) -> Iterator[None]:
        """Set up a forward pass that may be trained: mode, precision and adapter."""
        use_evaluation_mode(self.model, checkpointing=self.gradient_checkpointing)
        adapters = self.adapters.active(adapter) if self.adapters else contextlib.nullcontext()
        with autocast(self.device, self.precision), adapters:
            yield

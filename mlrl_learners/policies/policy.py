"""One set of weights, or an adapter on a frozen one: sampling from it, and log-probabilities."""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mlrl_learners.engine import families, model_checks, sharding
from mlrl_learners.engine.adapter_rows import AdapterRows
from mlrl_learners.engine.decoding import generate
from mlrl_learners.engine.dropout import use_evaluation_mode, without_dropout
from mlrl_learners.engine.logprobs import (
    TokenRow,
    logprobs_and_states,
    micro_batches,
    num_tokens,
    prompt_states,
)
from mlrl_learners.engine.onednn_layers import use_fast_linears
from mlrl_learners.engine.recomputing_layers import use_lean_layers
from mlrl_learners.engine.sampling import SamplingConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import weight_files
from mlrl_learners.policies.adapters import AdapterConfig, FrozenBase
from mlrl_learners.policies.chat import end_of_turn, eos_ids
from mlrl_learners.processes.work_sharing import deal, world
from mlrl_learners.types import Completion

__all__ = ["Policy", "Precision"]

Precision = Literal["float32", "bf16"]
NOTHING = TokenRow((0,), (0,))  # what is read where there is nothing, to stay in step with others


class Policy:
    """A causal language model and its tokenizer.

    Args:
        model: A `transformers` causal language model.
        tokenizer: Its tokenizer.
        precision: `"bf16"` computes under bfloat16 autocast; the weights stay as they are.
        gradient_checkpointing: Recompute activations in the backward pass to save memory.

    Attributes:
        eos_ids: Every id that ends an answer.
        end_of_turn: The one of them that answers of others are taught to end with, if there is one.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - transformers ships no types
        tokenizer: Any,  # noqa: ANN401
        *,
        precision: Precision = "float32",
        gradient_checkpointing: bool = False,
    ) -> None:
        if precision not in ("float32", "bf16"):
            raise ConfigError(f"precision must be float32 or bf16, got {precision!r}")
        self.model = model
        self.tokenizer = tokenizer
        self.precision = precision
        self.base: FrozenBase | None = None
        self.adapter: str | None = None
        model_checks.check_is_causal(model)
        self.eos_ids = eos_ids(model, tokenizer)
        without_dropout(model)
        self.end_of_turn = end_of_turn(tokenizer)
        use_fast_linears(model)
        use_lean_layers(model)
        families.check_head(model)
        # Tried once and before any weights are loaded: a resumed run must do as it did before.
        self.rereads = not families.keeps_cache(model)
        self.packs_prompts = not self.rereads and families.packs_prompts(model)
        self.recorder = families.recorder_of(model)
        with self._autocast():
            self.reads_plainly = families.reads_plainly(model)
        self.gradient_checkpointing = gradient_checkpointing
        if gradient_checkpointing:
            model_checks.enable_checkpointing(model)
        self._family = type(model)  # which sharding changes

    def shard(self, device: str) -> None:
        """Spread the weights over all processes, this one's part on `device` (`"auto"`: a GPU)."""
        sharding.shard(self.model, device)

    def freeze(self, config: AdapterConfig, source: str) -> None:
        """Keep the weights as they are from now on: they may be a base for adapters."""
        self.base = FrozenBase(self.model, config, source)
        if self.gradient_checkpointing:
            contexts = self.base.checkpoint_contexts
            self.model.gradient_checkpointing_enable(
                {"use_reentrant": False, "context_fn": contexts}
            )

    def with_adapter(self, name: str, seed: int) -> "Policy":
        """Return a policy with a new adapter on this one's frozen weights.

        Args:
            name: Its name, unlike those of others on these weights.
            seed: Decides the adapter's first weights.
        """
        if self.base is None:
            raise ConfigError("adapters need a frozen base: freeze the policy first")
        self.base.add(name, seed)
        return self._on_base(name)

    def parameters(self) -> list[nn.Parameter]:
        """Return what can be trained: all weights, those of the adapter, or none."""
        if self.base is None:
            return [weight for weight in self.model.parameters() if weight.requires_grad]
        return [] if self.adapter is None else self.base.parameters(self.adapter)

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Return those of `parameters` that the states, without the head, hang on."""
        decoder = {id(weight) for weight in self.model.get_decoder().parameters()}
        return [weight for weight in self.parameters() if id(weight) in decoder]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def max_positions(self) -> int | None:
        """Most tokens the model can read, where it says so."""
        return getattr(self.model.config, "max_position_embeddings", None)

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        sampling: SamplingConfig,
        *,
        generator: torch.Generator | None,
        max_rows: int = 64,
        adapters: Sequence[str | None] | None = None,
    ) -> list[list[Completion]]:
        """Draw `num_samples` completions of each prompt; greedily without a generator.

        Args:
            prompts: Token ids of each.
            num_samples: Completions of each, G.
            sampling: How tokens are drawn.
            generator: Where the random numbers come from.
            max_rows: Most completions that are decoded at once.
            adapters: For each prompt, which adapter on the same base answers it; by default this
                policy's own.
        """
        self.model.eval()
        with self._autocast(), self._rows(adapters or [self.adapter] * len(prompts)) as rows:
            sampled = generate(
                self.model,
                prompts,
                num_samples,
                sampling,
                eos_ids=self.eos_ids,
                generator=generator,
                max_rows=max_rows,
                adapters=rows,
                recorder=self.recorder,
                plain=self.reads_plainly,
                rereads=self.rereads,
            )
        texts = self.tokenizer.batch_decode(
            [list(answer.token_ids) for answers in sampled for answer in answers],
            skip_special_tokens=True,
        )
        text = iter(texts)
        return [
            [
                Completion(
                    text=next(text),
                    prompt_ids=tuple(prompt),
                    token_ids=answer.token_ids,
                    logprobs=answer.logprobs,
                    finish_reason="stop" if answer.ended else "length",
                    nucleus=answer.nucleus,
                )
                for answer in answers
            ]
            for prompt, answers in zip(prompts, sampled, strict=True)
        ]

    def logprobs(
        self, rows: Sequence[TokenRow], *, temperature: float, with_entropy: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and entropies of all completion tokens, `[T]` each."""
        logprobs, entropy, _ = self.logprobs_and_states(
            rows, temperature=temperature, with_entropy=with_entropy
        )
        return logprobs, entropy

    def logprobs_and_states(
        self,
        rows: Sequence[TokenRow],
        *,
        temperature: float,
        with_entropy: bool = True,
        entropy_gradient: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `logprobs` does, and the states at the ends of the prompts, `[B, H]`."""
        use_evaluation_mode(self.model, checkpointing=self.gradient_checkpointing)
        read = rows or [NOTHING]
        with self._computing():
            logprobs, entropy, states = sharding.compute(
                self.model,
                lambda: logprobs_and_states(
                    self.model,
                    read,
                    temperature=temperature,
                    with_entropy=with_entropy,
                    entropy_gradient=entropy_gradient,
                    packed=self.packs_prompts,
                ),
            )
        return (logprobs, entropy, states) if rows else (logprobs[:0], entropy[:0], states[:0])

    def prompt_states(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return the decoder's states at the ends of the prompts, `[B, H]`."""
        use_evaluation_mode(self.model, checkpointing=self.gradient_checkpointing)
        with self._computing():
            states = sharding.compute(
                self.model,
                lambda: prompt_states(self.model.get_decoder(), prompts or [NOTHING.prompt_ids]),
            )
        return states[: len(prompts)]

    def micro_batches(self, rows: Sequence[TokenRow], max_tokens: int) -> Iterator[list[int]]:
        """Split row numbers into forward passes of at most `max_tokens` tokens each.

        With several processes these are this one's: each batch is exactly one's. What is summed up
        over them is therefore a part; gradients are put together by `PolicyOptimizer.step`. Where
        the weights are in pieces, all processes are given as many batches, some of them empty.
        """
        batches = list(micro_batches(rows, max_tokens, packed=self.packs_prompts))
        shares = deal([num_tokens(rows, batch) for batch in batches])
        ours = shares[world().rank]
        yield from (batches[i] for i in ours)
        if sharding.is_sharded(self.model):
            yield from ([] for _ in range(len(ours), max(map(len, shares))))

    def frozen_copy(self) -> "Policy":
        """Return what is not trained, to measure a divergence from: a copy, or the base alone."""
        if self.base is not None:
            return self._on_base(None)
        if not sharding.is_sharded(self.model):
            model = copy.deepcopy(self.model).requires_grad_(False)
            return Policy(model, self.tokenizer, precision=self.precision)
        model = self._family(self.model.config).to(next(self.model.parameters()).dtype)
        model.load_state_dict(sharding.whole_weights(self.model, everywhere=True))
        copied = Policy(model.requires_grad_(False), self.tokenizer, precision=self.precision)
        copied.shard(self.device.type)
        return copied

    def save(self, folder: Path) -> None:
        """Write what can be trained, and what it belongs to.

        All weights and the tokenizer make a folder that `transformers` loads, an adapter one that
        `peft` loads.
        """
        if self.base is not None:
            self.base.save(self.adapter, folder)
            return
        weight_files.save(self.model, folder)
        self.tokenizer.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        """Read back the weights that `save` wrote.

        Raises:
            CheckpointError: If the folder holds no weights, or those of another model.
        """
        if self.base is not None:
            self.base.load(self.adapter, folder)
            return
        weight_files.load(self.model, self._family, folder)

    def _on_base(self, adapter: str | None) -> "Policy":
        """Return a policy on the same weights with another adapter."""
        other = copy.copy(self)
        other.adapter = adapter
        return other

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._autocast())
            if self.base is not None:
                stack.enter_context(self.base.active(self.adapter))
            yield

    def _rows(
        self, adapters: Sequence[str | None]
    ) -> contextlib.AbstractContextManager[AdapterRows | None]:
        if self.base is None:
            return contextlib.nullcontext()
        return self.base.active_by_row(adapters)

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

"""A policy: a causal language model, or an adapter on a frozen one, with its tokenizer."""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.engine import Engine, Precision, SampledTokens, SamplingConfig, TokenRow
from mlrl_learners.engine.decoding_task import MIN_BATCHES
from mlrl_learners.engine.sharding import is_sharded
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies.adapters import AdapterConfig, FrozenBase
from mlrl_learners.policies.chat import end_of_turn, eos_ids
from mlrl_learners.policies.loss_scale import LossScale
from mlrl_learners.policies.stop_texts import StopTexts
from mlrl_learners.types import Completion

__all__ = ["Policy", "Precision"]


class Policy:
    """A causal language model and its tokenizer.

    The model that is passed is not modified. The policy executes a copy of its modules that shares
    its weights, see `Engine`: training the policy trains the model.

    Args:
        model: A `transformers` causal language model.
        tokenizer: Its tokenizer.
        precision: `"bf16"` and `"fp16"` compute under autocast; the weights keep their type.
        gradient_checkpointing: Recompute activations in the backward pass to save memory.

    Attributes:
        engine: Executes the model; policies with adapters on one base share it.
        tokenizer: The tokenizer.
        base: The frozen weights that adapters belong to; None before `freeze`.
        adapter: Name of this policy's adapter; None for a policy without one.
        eos_ids: All ids that end an answer.
        end_of_turn: The id that ends answers in supervised training, if there is one.

    Raises:
        ConfigError: If `precision` is unknown, or the model cannot be trained here.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - transformers ships no types
        tokenizer: Any,  # noqa: ANN401
        *,
        precision: Precision = "float32",
        gradient_checkpointing: bool = False,
    ) -> None:
        self.engine = Engine(
            model, precision=precision, gradient_checkpointing=gradient_checkpointing
        )
        self.tokenizer = tokenizer
        self.base: FrozenBase | None = None
        self.adapter: str | None = None
        self.eos_ids = eos_ids(self.model, tokenizer)
        self.end_of_turn = end_of_turn(tokenizer)

    @property
    def model(self) -> Any:  # noqa: ANN401
        """The model that is executed; its weights are those of the model that was passed."""
        return self.engine.model

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.engine.device

    @property
    def max_positions(self) -> int | None:
        """Most tokens that the model can read, if its configuration says so."""
        return getattr(self.model.config, "max_position_embeddings", None)

    @property
    def is_rounded(self) -> bool:
        """Whether weights or computations are below float32: sampling and training then differ."""
        types = {weight.dtype for weight in self.model.parameters()}
        return self.engine.precision != "float32" or types != {torch.float32}

    @property
    def is_sharded(self) -> bool:
        """Whether weights are sharded over processes, which must then all take part in `save`."""
        return is_sharded(self.model)

    def new_loss_scale(self) -> LossScale:
        """Return a scale for losses of this policy, active if gradients pass through float16."""
        return LossScale(is_active=self.engine.uses_float16)

    def shard(self, device: str) -> None:
        """Shard the weights over all processes, with shards on `device` (`"auto"`: a GPU)."""
        self.engine.shard(device)

    def freeze(self, config: AdapterConfig, source: str) -> None:
        """Freeze the weights, which may be a base for adapters from now on.

        Args:
            config: Rank, scale and layers of adapters.
            source: Where the model was loaded from, which files of adapters name.
        """
        self.base = FrozenBase(self.engine, config, source)

    def with_adapter(self, name: str, seed: int) -> "Policy":
        """Return a policy with a new adapter on this one's frozen weights.

        Args:
            name: A name that no other adapter on these weights has.
            seed: Seed of the adapter's initial weights.

        Raises:
            ConfigError: If the policy is not frozen, or its layers do not support adapters.
        """
        if self.base is None:
            raise ConfigError("adapters need a frozen base: freeze the policy first")
        self.base.layers.add(name, seed)
        return self._on_base(name)

    def parameters(self) -> list[nn.Parameter]:
        """Return what can be trained: all weights, those of the adapter, or none."""
        return self.engine.parameters(self.adapter)

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Return those of `parameters` that hidden states depend on, which the head does not."""
        decoder = {id(weight) for weight in self.model.get_decoder().parameters()}
        return [weight for weight in self.parameters() if id(weight) in decoder]

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        sampling: SamplingConfig,
        *,
        seeds: Sequence[int] | None,
        max_rows: int = 64,
        min_batches: int = MIN_BATCHES,
        adapters: Sequence[str | None] | None = None,
    ) -> list[list[Completion]]:
        """Sample `num_samples` completions of each prompt.

        Args:
            prompts: Token ids of each.
            num_samples: Completions of each, G.
            sampling: Length, temperature and truncation.
            seeds: Seed of the random numbers of each prompt; None decodes greedily.
            max_rows: Most completions that are decoded at once.
            min_batches: Number of batches that a CPU cuts larger calls to.
            adapters: For each prompt, the adapter on the same base that answers it; by default
                this policy's own.
        """
        stops = StopTexts(self.tokenizer, sampling.stop)
        sampled = self.engine.sample(
            prompts,
            num_samples,
            sampling,
            eos_ids=self.eos_ids,
            seeds=seeds,
            max_rows=max_rows,
            min_batches=min_batches,
            adapters=adapters or [self.adapter] * len(prompts),
            texts=stops if sampling.stop else None,
        )
        texts = self.tokenizer.batch_decode(
            [list(answer.token_ids) for answers in sampled for answer in answers],
            skip_special_tokens=True,
        )
        text = map(stops.cut, texts)
        return [
            [_completion(prompt, answer, next(text)) for answer in answers]
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
        every_state: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `logprobs` does, and states, see `Engine.logprobs`."""
        return self.engine.logprobs(
            rows,
            temperature=temperature,
            with_entropy=with_entropy,
            entropy_gradient=entropy_gradient,
            every_state=every_state,
            adapter=self.adapter,
        )

    def prompt_states(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return the decoder's states at the ends of the prompts, `[B, H]`."""
        return self.engine.prompt_states(prompts, adapter=self.adapter)

    def token_states(self, rows: Sequence[TokenRow]) -> Tensor:
        """Return the decoder's states before each completion token, `[T, H]`."""
        return self.engine.token_states(rows, adapter=self.adapter)

    def micro_batches(self, rows: Sequence[TokenRow], max_tokens: int) -> Iterator[list[int]]:
        """Yield row numbers of forward passes of at most `max_tokens` tokens, see `Engine`."""
        return self.engine.micro_batches(rows, max_tokens)

    def frozen_copy(self) -> "Policy":
        """Return a reference policy that is not trained: a copy, or the base without adapters."""
        if self.base is not None:
            return self._on_base(None)
        copied = copy.copy(self)
        copied.engine = self.engine.frozen_copy()
        return copied

    def save(self, folder: Path) -> None:
        """Write what can be trained.

        All weights and the tokenizer make a folder that `transformers` loads, an adapter one that
        `peft` loads.
        """
        if self.base is not None:
            self.base.save(self.adapter, folder)
            return
        self.engine.save(folder)
        self.tokenizer.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        """Read the weights that `save` wrote.

        Raises:
            CheckpointError: If the folder holds no weights, or those of another model.
        """
        if self.base is not None:
            self.base.load(self.adapter, folder)
            return
        self.engine.load(folder)

    def _on_base(self, adapter: str | None) -> "Policy":
        """Return a policy on the same weights with another adapter."""
        other = copy.copy(self)
        other.adapter = adapter
        return other


def _completion(prompt: Sequence[int], answer: SampledTokens, text: str) -> Completion:
    return Completion(
        text=text,
        prompt_ids=tuple(prompt),
        token_ids=answer.token_ids,
        logprobs=answer.logprobs,
        finish_reason="stop" if answer.ended else "length",
        nucleus=answer.nucleus,
    )

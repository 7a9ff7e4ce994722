"""One set of weights: sampling from it, and log-probabilities under it."""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mlrl_learners.errors import CheckpointError, ConfigError
from mlrl_learners.functional.logprobs import (
    TokenRow,
    completion_logprobs,
    logprobs_and_states,
    micro_batches,
    prompt_states,
)
from mlrl_learners.policies.fast_linear import use_fast_linears
from mlrl_learners.policies.generate import generate
from mlrl_learners.policies.sampling import SamplingConfig
from mlrl_learners.types import Completion

__all__ = ["Policy", "Precision"]

Precision = Literal["float32", "bf16"]


class Policy:
    """A causal language model and its tokenizer.

    Args:
        model: A `transformers` causal language model.
        tokenizer: Its tokenizer.
        precision: `"bf16"` computes under bfloat16 autocast; the weights stay as they are.
        gradient_checkpointing: Recompute activations in the backward pass to save memory.
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
        self.eos_ids = _eos_ids(model, tokenizer)
        _without_dropout(model)
        use_fast_linears(model)
        _check_head(model)
        # Tried once and before any weights are loaded: a resumed run must do as it did before.
        self.packs_prompts = _packs_prompts(model)
        self.gradient_checkpointing = gradient_checkpointing
        if gradient_checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})

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
    ) -> list[list[Completion]]:
        """Draw `num_samples` completions of each prompt; greedily without a generator."""
        self.model.eval()
        with self._autocast():
            sampled = generate(
                self.model,
                prompts,
                num_samples,
                sampling,
                eos_ids=self.eos_ids,
                generator=generator,
                max_rows=max_rows,
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
        packed = self.packs_prompts
        self.model.train(self.gradient_checkpointing)  # it only acts in training mode
        with self._autocast():
            return logprobs_and_states(
                self.model,
                rows,
                temperature=temperature,
                with_entropy=with_entropy,
                entropy_gradient=entropy_gradient,
                packed=packed,
            )

    def prompt_states(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return the decoder's states at the ends of the prompts, `[B, H]`."""
        self.model.train(self.gradient_checkpointing)
        with self._autocast():
            return prompt_states(self.model.get_decoder(), prompts)

    def micro_batches(self, rows: Sequence[TokenRow], max_tokens: int) -> Iterator[list[int]]:
        """Split row numbers into forward passes of at most `max_tokens` tokens each."""
        return micro_batches(rows, max_tokens, packed=self.packs_prompts)

    def frozen_copy(self) -> "Policy":
        """Return a copy that is not trained, to measure a divergence from."""
        model = copy.deepcopy(self.model).requires_grad_(False)
        return Policy(model, self.tokenizer, precision=self.precision)

    def save(self, folder: Path) -> None:
        """Write weights and tokenizer as a folder that `transformers` loads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        """Read back the weights that `save` wrote.

        Raises:
            CheckpointError: If the folder holds no weights, or those of another model.
        """
        dtype = next(self.model.parameters()).dtype
        try:
            saved = type(self.model).from_pretrained(folder, dtype=dtype, local_files_only=True)
            self.model.load_state_dict(saved.state_dict())
        except (OSError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise CheckpointError(f"weights in {str(folder)!r} do not fit: {reason}") from error

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Collect every id that ends an answer: chat models often have more than one."""
    ids = {tokenizer.eos_token_id, model.config.eos_token_id}
    if getattr(model, "generation_config", None) is not None:
        stated = model.generation_config.eos_token_id
        ids |= set(stated) if isinstance(stated, list) else {stated}
    return tuple(sorted(int(number) for number in ids if isinstance(number, int)))


def _check_head(model: Any) -> None:  # noqa: ANN401
    """Compare our logits with the model's own.

    Raises:
        ConfigError: If they differ: the family does something to its logits that we know not of.
    """
    row = TokenRow([1], [2, 3])
    model.eval()
    with torch.no_grad():
        ours, _ = completion_logprobs(model, [row], with_entropy=False, packed=False)
        ids = torch.tensor([[1, 2]], device=ours.device)
        scores = torch.log_softmax(model(input_ids=ids).logits[0].float(), -1)
    theirs = scores[[0, 1], [2, 3]].to(ours.device)
    if not torch.allclose(ours, theirs, atol=_tolerance(model)):
        family = model.config.model_type
        raise ConfigError(
            f"models of the family {family!r} alter their logits in a way that is not known here"
        )


def _packs_prompts(model: Any) -> bool:  # noqa: ANN401
    """Return whether a prompt can be read once for several completions to the same effect.

    Tried on two short rows: not every family takes positions and attention from outside.
    """
    config = model.config
    kinds = getattr(config, "layer_types", None)
    windowed = getattr(config, "sliding_window", None) if kinds is None else None
    if windowed or any(kind != "full_attention" for kind in kinds or ()):
        return False  # these layers look at distances in the sequence as it is laid out
    if config._attn_implementation != "sdpa":  # noqa: SLF001 - there is no public name for it
        return False
    rows = [TokenRow([1, 2, 3], [4, 5]), TokenRow([1, 2, 3], [6, 7])]
    model.eval()
    with torch.no_grad():
        try:
            packed, _ = completion_logprobs(model, rows, with_entropy=False)
        except ValueError:  # its attention does more than ours knows of
            return False
        apart, _ = completion_logprobs(model, rows, with_entropy=False, packed=False)
    return bool(torch.allclose(packed, apart, atol=_tolerance(model)))


def _tolerance(model: nn.Module) -> float:
    return 1e-4 if next(model.parameters()).dtype == torch.float32 else 0.05


def _without_dropout(model: nn.Module) -> None:
    """Switch dropout off for good: the policy that is trained must be the one that was sampled."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0  # type: ignore[assignment]

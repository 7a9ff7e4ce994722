"""Log-probabilities of completions under a causal language model, batched and chunked.

The head runs over completion tokens only, a chunk at a time and again in the backward pass, so the
logits of a whole batch never exist at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

__all__ = ["TokenRow", "completion_logprobs", "micro_batches"]

HEAD_CHUNK_TOKENS = 256


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A prompt and the completion sampled for it, without padding; both hold at least one token."""

    prompt_ids: Sequence[int]
    token_ids: Sequence[int]

    @property
    def num_tokens(self) -> int:
        """Tokens the model reads to predict the completion: all but the last."""
        return len(self.prompt_ids) + len(self.token_ids) - 1


def micro_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Split row numbers into batches of like length, each at most `max_tokens` when padded.

    A row longer than `max_tokens` is a batch by itself. Every row is in exactly one batch.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def completion_logprobs(
    model: nn.Module,
    rows: Sequence[TokenRow],
    *,
    temperature: float = 1.0,
    with_entropy: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return log pi(token) at `temperature` for each completion token, and the entropy there.

    Rows are padded on the right and no attention mask is passed: causal attention already keeps
    every real token from seeing what comes after it, and what pads would compute is never read.

    Args:
        model: A `transformers` causal language model.
        rows: Prompts and completions.
        temperature: What logits are divided by; the same as in sampling.
        with_entropy: Compute the entropy (no gradient); zeros otherwise.

    Returns:
        Two float32 vectors `[T]`, T the completion tokens of all rows, in order.
    """
    device = next(model.parameters()).device
    width = max(row.num_tokens for row in rows)
    input_ids = torch.zeros(len(rows), width, dtype=torch.long)
    row_numbers: list[int] = []
    columns: list[int] = []
    for number, row in enumerate(rows):
        ids = [*row.prompt_ids, *row.token_ids][:-1]
        input_ids[number, : len(ids)] = torch.tensor(ids)
        columns.extend(range(len(row.prompt_ids) - 1, len(ids)))
        row_numbers.extend([number] * len(row.token_ids))
    body = model.get_decoder()  # type: ignore[operator]
    hidden = body(input_ids=input_ids.to(device), use_cache=False).last_hidden_state
    hidden = hidden[torch.tensor(row_numbers), torch.tensor(columns)]  # [B, W, H] -> [T, H]
    targets = torch.tensor([token for row in rows for token in row.token_ids], device=device)
    return _head_logprobs(model, hidden, targets, temperature, with_entropy)


def _head_logprobs(
    model: nn.Module, hidden: Tensor, targets: Tensor, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor]:
    chunks = [
        checkpoint(
            _chunk_logprobs,
            model,
            hidden[start : start + HEAD_CHUNK_TOKENS],
            targets[start : start + HEAD_CHUNK_TOKENS],
            temperature,
            with_entropy,
            use_reentrant=False,
        )
        for start in range(0, len(targets), HEAD_CHUNK_TOKENS)
    ]
    logprobs, entropy = zip(*chunks, strict=True)
    return torch.cat(logprobs), torch.cat(entropy)


def _chunk_logprobs(
    model: nn.Module, hidden: Tensor, targets: Tensor, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor]:
    logits = _head_logits(model, hidden).float() / temperature  # [T, V]
    normalizer = torch.logsumexp(logits, dim=-1)  # [T]
    logprobs = logits.gather(-1, targets[:, None]).squeeze(-1) - normalizer
    if not with_entropy:
        return logprobs, torch.zeros_like(logprobs)
    with torch.no_grad():
        probs = torch.exp(logits - normalizer[:, None])
        entropy = normalizer - torch.einsum("tv,tv->t", probs, logits)
    return logprobs, entropy


def _head_logits(model: nn.Module, hidden: Tensor) -> Tensor:
    """Apply the head as the model's own forward does: some families scale or cap the logits."""
    logits: Tensor = model.get_output_embeddings()(hidden)  # type: ignore[operator]
    config = model.config
    if scale := getattr(config, "logit_scale", None):  # Cohere
        logits = logits * scale
    if divisor := getattr(config, "logits_scaling", None):  # Granite
        logits = logits / divisor
    if cap := getattr(config, "final_logit_softcapping", None):  # Gemma
        logits = torch.tanh(logits / cap) * cap
    return logits

"""Fused language-model head: log-probabilities from hidden states, in chunks.

Logits are kept for the backward pass up to `KEPT_BYTES`; those of further chunks are freed and
recomputed. The gradient of the logits overwrites them, and the gradient of the head's weight is
summed in place, so that the logits of a large batch never exist at once. For tokens that were
sampled from small nuclei only the logits of these nuclei are computed.
"""

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mlrl_learners.engine.kernels.gathered import gathered_logits
from mlrl_learners.engine.kernels.onednn import product
from mlrl_learners.functional.restriction import Restriction

__all__ = ["head_logits", "head_logprobs"]

# The weight's gradient is accumulated once per chunk, with a cast if products have another type.
CHUNK_TOKENS = {"cpu": 512, "cuda": 1024}
CHUNK_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}  # of float32 logits
# 1,365 tokens of 49,152 logits, whose recomputation would be a quarter of the work.
KEPT_BYTES = 256 << 20
CAPS = ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap")
LOGIT_OPTIONS = ("logit_scale", "logits_scaling", *CAPS)
GATHERED_SHARE = 1 / 256  # of the vocabulary per nucleus: above, the full product is as fast


def head_logprobs(
    model: nn.Module,
    hidden: Tensor,
    targets: Tensor,
    temperature: float,
    *,
    with_entropy: bool,
    entropy_gradient: bool = False,
    restriction: Restriction | None = None,
) -> tuple[Tensor, Tensor]:
    """Return log pi(target) at `temperature` for each hidden state, and the entropy there.

    Args:
        model: A `transformers` causal language model.
        hidden: Output of its decoder, `[T, H]`.
        targets: Token ids, `[T]`.
        temperature: Divisor of the logits.
        with_entropy: Compute the entropy; zeros otherwise.
        entropy_gradient: Whether the entropy has a gradient.
        restriction: Nuclei of the targets, over which distributions are renormalised; None for the
            whole vocabulary.

    Returns:
        Two float32 vectors `[T]`.
    """
    if restriction is None:
        logprobs, entropy = _whole_logprobs(model, hidden, targets, temperature, with_entropy)
    else:
        scores = _member_logits(model, hidden[restriction.restricted], restriction) / temperature
        logprobs, entropy = restriction.logprobs(scores)
        if len(restriction.free):
            parts = _whole_logprobs(
                model,
                hidden[restriction.free],
                targets[restriction.free],
                temperature,
                with_entropy,
            )
            logprobs = restriction.merge(logprobs, parts[0])
            entropy = restriction.merge(entropy, parts[1])
    return logprobs, entropy if entropy_gradient else entropy.detach()


def _whole_logprobs(
    model: nn.Module, hidden: Tensor, targets: Tensor, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor]:
    """Return what `head_logprobs` does without a restriction."""
    if _is_bias_free_product(model):
        weight = model.get_output_embeddings().weight  # type: ignore[operator]
        logprobs, entropy = _HeadLogprobs.apply(  # type: ignore[no-untyped-call]
            hidden,
            weight,
            targets,
            temperature,
            with_entropy,
            KEPT_BYTES if torch.is_grad_enabled() else 0,
        )
    else:
        chunks = [
            checkpoint(
                _chunk_logprobs,
                model,
                hidden[rows],
                targets[rows],
                temperature,
                with_entropy,
                use_reentrant=False,
            )
            for rows in _chunks(hidden, _text_config(model).vocab_size)
        ]
        logprobs, entropy = (torch.cat(parts) for parts in zip(*chunks, strict=True))
    return logprobs, entropy


def _is_bias_free_product(model: nn.Module) -> bool:
    """Return whether logits are hidden states times a weight, without bias, scale or cap."""
    head = model.get_output_embeddings()  # type: ignore[operator]
    is_linear = type(head) is nn.Linear or getattr(type(head), "computes_product_only", False)
    return is_linear and head.bias is None and not any(_logit_options(model).values())


def _logit_options(model: nn.Module) -> dict[str, float | None]:
    """Return the options by which a family scales or caps its logits."""
    config = _text_config(model)
    return {name: getattr(config, name, None) for name in LOGIT_OPTIONS}


def _text_config(model: nn.Module) -> Any:  # noqa: ANN401 - transformers ships no types
    return model.config.get_text_config()  # type: ignore[operator, union-attr]


def _chunks(hidden: Tensor, num_logits: int) -> Iterator[slice]:
    kind = hidden.device.type
    fitting = CHUNK_BYTES.get(kind, 1 << 30) // (4 * num_logits)
    size = max(1, min(CHUNK_TOKENS.get(kind, 1024), fitting))
    return (slice(start, start + size) for start in range(0, len(hidden), size))


class _HeadLogprobs(torch.autograd.Function):
    """A bias-free head fused with the softmax.

    With respect to the logits divided by the temperature, d log p(target) = 1[target] - p and
    d H = -p (log p + H).
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: float,
        with_entropy: bool,
        kept_bytes: int,
    ) -> tuple[Tensor, Tensor]:
        hidden, factor = _operands(hidden, weight)
        normalizers = torch.empty(len(hidden), device=hidden.device)  # [T]
        logprobs, entropy = torch.empty_like(normalizers), torch.zeros_like(normalizers)
        ctx.kept = {}  # by the start of a chunk, its log-probabilities [C, V]
        for rows in _chunks(hidden, len(weight)):
            scores = product(hidden[rows], factor).float().div_(temperature)  # [C, V]
            normalizers[rows] = torch.logsumexp(scores, dim=-1)
            scores.sub_(normalizers[rows, None])
            logprobs[rows] = scores.gather(-1, targets[rows, None]).squeeze(-1)
            if with_entropy:
                entropy[rows] = -torch.linalg.vecdot(scores.exp(), scores)
            if (kept_bytes := kept_bytes - scores.nbytes) >= 0:
                ctx.kept[rows.start] = scores
        cast = None if factor.dtype == weight.dtype else factor
        ctx.save_for_backward(hidden, weight, cast, targets, normalizers, entropy)
        ctx.temperature = temperature
        ctx.set_materialize_grads(False)
        return logprobs, entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401
        for_logprobs: Tensor | None,
        for_entropy: Tensor | None,
    ) -> tuple[Tensor | None, Tensor | None, None, None, None, None]:
        hidden, weight, cast, targets, normalizers, entropy = ctx.saved_tensors
        factor = weight if cast is None else cast
        for_hidden = torch.empty_like(hidden, dtype=torch.float32)
        for_weight: Tensor | None = None
        if for_logprobs is None:
            for_logprobs = torch.zeros_like(normalizers)
        for rows in _chunks(hidden, len(weight)):
            scores = ctx.kept.pop(rows.start, None)  # overwritten: a second pass recomputes
            if scores is None:
                scores = product(hidden[rows], factor).float().div_(ctx.temperature)
                scores.sub_(normalizers[rows, None])
            scale = for_logprobs[rows, None]
            if for_entropy is None:
                part = scores.exp_().mul_(-scale)
            else:
                part = _entropy_part(scores, scale, for_entropy[rows, None], entropy[rows, None])
            part.scatter_add_(-1, targets[rows, None], scale)
            part = part.div_(ctx.temperature).to(factor.dtype)
            for_hidden[rows] = product(part, factor.t()).float()
            if ctx.needs_input_grad[1]:
                for_weight = _add_product(for_weight, part.t(), hidden[rows], weight.dtype)
        return for_hidden.to(hidden.dtype), for_weight, None, None, None, None


def _entropy_part(logprobs: Tensor, scale: Tensor, for_entropy: Tensor, entropy: Tensor) -> Tensor:
    """Return the logits' gradient from -scale * p and from the entropy's -p (log p + H)."""
    probs = logprobs.exp()
    return logprobs.add_(entropy).mul_(for_entropy).add_(scale).mul_(probs).neg_()


def _operands(hidden: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in autocast's type, or in that of the weight without autocast."""
    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    return hidden.to(dtype), weight.to(dtype)


def _add_product(total: Tensor | None, left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Return total + left @ right, summed in place in `dtype`."""
    if total is None:
        return (left @ right).to(dtype)
    return total.addmm_(left, right) if left.dtype == dtype else total.add_(left @ right)


def _chunk_logprobs(
    model: nn.Module, hidden: Tensor, targets: Tensor, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor]:
    logits = head_logits(model, hidden).float() / temperature  # [T, V]
    normalizer = torch.logsumexp(logits, dim=-1)  # [T]
    logprobs = logits.gather(-1, targets[:, None]).squeeze(-1) - normalizer
    if not with_entropy:
        return logprobs, torch.zeros_like(logprobs)
    scores = logits - normalizer[:, None]
    return logprobs, -torch.linalg.vecdot(scores.exp(), scores)


def head_logits(model: nn.Module, hidden: Tensor) -> Tensor:
    """Return the logits as the model's own forward computes them, scaled or capped, `[T, V]`."""
    logits: Tensor = model.get_output_embeddings()(hidden)  # type: ignore[operator]
    options = _logit_options(model)
    if scale := options["logit_scale"]:  # Cohere
        logits = logits * scale
    if divisor := options["logits_scaling"]:  # Granite
        logits = logits / divisor
    for cap in filter(None, map(options.get, CAPS)):  # Gemma, RecurrentGemma, xLSTM
        logits = torch.tanh(logits / cap) * cap
    return logits


def _member_logits(model: nn.Module, hidden: Tensor, restriction: Restriction) -> Tensor:
    """Return the logits of the members of nuclei, float32 `[R, H] -> [M]`."""
    is_product, vocabulary = _is_bias_free_product(model), _text_config(model).vocab_size
    few = len(restriction.ids) <= GATHERED_SHARE * vocabulary * len(hidden)
    # A GPU accumulates gradients of equal rows in no fixed order, and is fast at the full product.
    if is_product and few and hidden.device.type == "cpu":
        weight = model.get_output_embeddings().weight  # type: ignore[operator]
        dtype = _operands(hidden[:1], weight[:1])[0].dtype
        return gathered_logits(hidden, weight, restriction.owners, restriction.ids, dtype)
    # A bias-free head saves only its inputs for the backward pass, no logits.
    read = _chosen_logits
    if not is_product:
        read = functools.partial(checkpoint, _chosen_logits, use_reentrant=False)
    chunks = []
    for rows in _chunks(hidden, vocabulary):
        members = restriction.members(rows)
        owners = restriction.owners[members] - rows.start
        chunks.append(read(model, hidden[rows], owners, restriction.ids[members]))
    return torch.cat(chunks)


def _chosen_logits(model: nn.Module, hidden: Tensor, owners: Tensor, ids: Tensor) -> Tensor:
    """Return some of the logits of a chunk, `[C, H] -> [M]`."""
    return head_logits(model, hidden)[owners, ids].float()

"""Functions of a decoder layer that recompute cheap intermediate values in the backward pass.

They give the same numbers as PyTorch's own functions and save fewer tensors.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu

from mlrl_learners.engine.kernels.onednn import product

__all__ = ["gated", "gated_product", "rms_norm"]


def rms_norm(states: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Return `states / sqrt(mean(states^2) + epsilon) * weight`; saves the states only.

    Source: arXiv 1910.07467, equation 4; computed in float32, and rounded before the weight.

    Args:
        states: `[..., H]`.
        weight: `[H]`.
        epsilon: At least 0.
    """
    result: Tensor = _RmsNorm.apply(states, weight, epsilon)  # type: ignore[no-untyped-call]
    return result


def gated_product(gate: Tensor, up: Tensor, weight: Tensor) -> Tensor:
    """Return `(silu(gate) * up) @ weight.T`, a SwiGLU's output; saves `gate` and `up`.

    Source: arXiv 2002.05202, equation 6.

    Args:
        gate: `[..., K]`.
        up: `[..., K]`, of the same type.
        weight: `[N, K]`; cast to the type of `gate`.
    """
    result: Tensor = _GatedProduct.apply(gate, up, weight)  # type: ignore[no-untyped-call]
    return result


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """Return `silu(gate) * up`, `[..., K]`, for other output layers; saves its inputs only."""
    result: Tensor = _Gated.apply(gate, up)  # type: ignore[no-untyped-call]
    return result


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, epsilon: float) -> Tensor:  # noqa: ANN401
        exact = states.float()
        scale = (exact.square().mean(-1, keepdim=True) + epsilon).rsqrt()
        ctx.save_for_backward(states, weight, scale)
        normed = (exact * scale).to(states.dtype)
        return normed.mul_(weight) if normed.dtype == weight.dtype else normed * weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:  # noqa: ANN401
        states, weight, scale = ctx.saved_tensors
        normed, gradient = states.float() * scale, gradient.float()
        parts = gradient * normed
        for_weight: Tensor | None = None
        if ctx.needs_input_grad[1]:
            for_weight = parts.flatten(0, -2).sum(0).to(weight.dtype)
        means = parts.mul_(weight).mean(-1, keepdim=True)
        for_states = (gradient * weight).addcmul_(normed, means, value=-1).mul_(scale)
        return for_states.to(states.dtype), for_weight, None


class _GatedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor, weight: Tensor) -> Tensor:  # noqa: ANN401
        factor = weight.to(gate.dtype)
        ctx.save_for_backward(gate, up, factor)
        ctx.weight_dtype = weight.dtype
        return product(silu(gate).mul_(up), factor)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401
        gradient: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        gate, up, factor = ctx.saved_tensors
        for_rows = product(gradient, factor.t())
        for_weight: Tensor | None = None
        if ctx.needs_input_grad[2]:
            rows = silu(gate).mul_(up).flatten(0, -2)
            for_weight = (gradient.flatten(0, -2).t() @ rows).to(ctx.weight_dtype)
        return *_through_gate(for_rows, gate, up), for_weight


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(gate, up)
        return silu(gate).mul_(up)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        return _through_gate(gradient, *ctx.saved_tensors)


def _through_gate(gradient: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of `gate` and `up` from that of `silu(gate) * up`."""
    for_up = silu(gate).mul_(gradient)
    return torch.ops.aten.silu_backward(gradient * up, gate), for_up

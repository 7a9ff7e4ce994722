"""Matrix products on a CPU through oneDNN, if it is available and gives the same numbers.

PyTorch computes float32 products on a CPU with MKL, which on many processors is half as fast as
oneDNN, and slower still for the few rows of a decoding step; bfloat16 products use oneDNN anyway.
Weights that are read at every step can be packed into oneDNN's layout once, in the types that this
processor has products for.
"""

import functools
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["has_onednn", "linear", "pack_weight", "packs", "product"]

PACKED_DTYPES = (torch.float32, torch.bfloat16)


@functools.cache
def has_onednn() -> bool:
    """Return whether oneDNN computes a small product correctly."""
    try:
        rows, weight = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
        same = torch.equal(_onednn(rows, weight), rows @ weight.t())
        packed = torch.equal(_onednn(rows, pack_weight(weight, 2)), rows @ weight.t())
    except (AttributeError, RuntimeError):  # another build of torch, another processor
        return False
    return same and packed


@functools.cache
def packs(dtype: torch.dtype) -> bool:
    """Return whether weights of a type can be packed: bfloat16 needs AVX-512 or a newer processor.

    Without these instructions PyTorch computes bfloat16 products with a reference implementation.
    """
    if dtype not in PACKED_DTYPES or not has_onednn():
        return False
    try:
        pack_weight(torch.zeros(4, 3, dtype=dtype), 2)
    except RuntimeError:
        return False
    return True


def product(rows: Tensor, weight: Tensor) -> Tensor:
    """Return `rows @ weight.T`, `[..., K] x [N, K] -> [..., N]`, without a gradient.

    `weight` may be packed, and may be a transposed view.
    """
    if weight.is_mkldnn or _fits_onednn(rows, weight):
        return _onednn(rows, weight)
    return functional.linear(rows, weight)


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `rows @ weight.T + bias` with gradients, as `torch.nn.functional.linear`."""
    if bias is None and _fits_onednn(rows, weight) and not torch.is_autocast_enabled("cpu"):
        result: Tensor = _Linear.apply(rows, weight)  # type: ignore[no-untyped-call]
        return result
    return functional.linear(rows, weight, bias)


def pack_weight(weight: Tensor, num_rows: int) -> Tensor:
    """Return a copy of `weight` in oneDNN's layout for `num_rows` rows; only `product` reads it."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), num_rows)  # noqa: SLF001
    return packed


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor) -> Tensor:  # noqa: ANN401 - torch's
        ctx.save_for_backward(rows, weight)
        return _onednn(rows, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:  # noqa: ANN401
        rows, weight = ctx.saved_tensors
        for_rows = _onednn(gradient, weight.t()) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return for_rows, None
        # MKL is as fast here: both operands are transposed views of long columns.
        return for_rows, gradient.flatten(0, -2).t() @ rows.flatten(0, -2)


def _fits_onednn(rows: Tensor, weight: Tensor) -> bool:
    return (
        rows.dtype == weight.dtype == torch.float32
        and rows.device.type == weight.device.type == "cpu"
        and rows.dim() >= 2
        and rows.numel() > 0
        and has_onednn()
    )


def _onednn(rows: Tensor, weight: Tensor) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")  # noqa: SLF001
    return out

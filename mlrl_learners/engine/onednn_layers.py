"""A model's linear layers, made fast on a CPU: same weights, same names, same numbers."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from mlrl_learners.engine.kernels.onednn import has_onednn, linear, pack_weight, product

__all__ = ["FastLinear", "packed_weights", "use_fast_linears"]

MAX_PACKED_BYTES = 4 << 30  # a packed copy of the weights beside them must not fill the memory
PACKED_DTYPES = (torch.float32, torch.bfloat16)


class FastLinear(nn.Linear):
    """`nn.Linear` by way of `mlrl_learners.engine.kernels.onednn`."""

    is_plain_linear = True  # nothing but a product, unlike an adapter or a quantised layer
    packed: Tensor | None = None

    def forward(self, rows: Tensor) -> Tensor:
        """Return `rows @ weight.T + bias`."""
        if self.packed is None:
            return linear(rows, self.weight, self.bias)
        out = product(rows.to(self.packed.dtype), self.packed)
        return out if self.bias is None else out + self.bias.to(out.dtype)


def use_fast_linears(model: nn.Module) -> None:
    """Turn the plain linear layers of a model on a CPU into fast ones, in place."""
    if not has_onednn():
        return
    for module in model.modules():
        if type(module) is nn.Linear and module.weight.device.type == "cpu":
            module.__class__ = FastLinear


@contextlib.contextmanager
def packed_weights(model: nn.Module, num_rows: int) -> Iterator[None]:
    """Read packed copies of the weights inside the block, in which nothing may be trained.

    Args:
        model: A model with fast linear layers; others are left as they are.
        num_rows: About how many rows a product has.
    """
    layers = [
        module
        for module in model.modules()
        if isinstance(module, FastLinear) and module.weight.device.type == "cpu"
    ]
    if any(isinstance(layer.weight, DTensor) for layer in layers):  # not all of it is here
        layers = []
    autocast = torch.is_autocast_enabled("cpu")
    dtypes = [torch.get_autocast_dtype("cpu") if autocast else x.weight.dtype for x in layers]
    num_bytes = sum(
        x.weight.numel() * dtype.itemsize for x, dtype in zip(layers, dtypes, strict=True)
    )
    if num_bytes > MAX_PACKED_BYTES or not set(dtypes) <= set(PACKED_DTYPES):
        layers = []
    try:
        for layer, dtype in zip(layers, dtypes, strict=False):
            layer.packed = pack_weight(layer.weight.to(dtype), num_rows)
        yield
    finally:
        for layer in layers:
            layer.packed = None

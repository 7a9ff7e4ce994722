"""Linear layers whose products run on oneDNN on a CPU: same weights, names and results."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from mlrl_learners.engine.kernels.onednn import has_onednn, linear, pack_weight, packs, product

__all__ = ["OneDnnLinear", "packed_weights", "use_onednn_layers"]

MAX_COPIED_BYTES = 4 << 30  # packed weights are a copy, which must not fill the memory


class OneDnnLinear(nn.Linear):
    """`nn.Linear` by way of `mlrl_learners.engine.kernels.onednn`.

    Attributes:
        packed: Weight in oneDNN's layout inside `packed_weights`; None outside.
    """

    computes_product_only = True  # unlike a layer with an adapter or quantised weights
    packed: Tensor | None = None

    def forward(self, rows: Tensor) -> Tensor:
        """Return `rows @ weight.T + bias`, `[..., out]`."""
        if self.packed is None:
            return linear(rows, self.weight, self.bias)
        out = product(rows.to(self.packed.dtype), self.packed)
        return out if self.bias is None else out + self.bias.to(out.dtype)


def use_onednn_layers(model: nn.Module) -> None:
    """Change the class of every `nn.Linear` on a CPU to `OneDnnLinear`, in place.

    Subclasses of `nn.Linear` are left alone.
    """
    if not has_onednn():
        return
    for module in model.modules():
        if type(module) is nn.Linear and module.weight.device.type == "cpu":
            module.__class__ = OneDnnLinear


@contextlib.contextmanager
def packed_weights(model: nn.Module, num_rows: int) -> Iterator[None]:
    """Read packed copies of the weights inside the block, in which nothing may be trained.

    Does nothing if the weights are sharded, too large or of a type that oneDNN does not pack.

    Args:
        model: A model with `OneDnnLinear` layers; others are left alone.
        num_rows: Typical number of rows of a product.
    """
    layers = [
        module
        for module in model.modules()
        if isinstance(module, OneDnnLinear) and module.weight.device.type == "cpu"
    ]
    if any(isinstance(layer.weight, DTensor) for layer in layers):
        layers = []
    autocast = torch.is_autocast_enabled("cpu")
    dtypes = [torch.get_autocast_dtype("cpu") if autocast else x.weight.dtype for x in layers]
    num_bytes = sum(
        x.weight.numel() * dtype.itemsize for x, dtype in zip(layers, dtypes, strict=True)
    )
    if num_bytes > MAX_COPIED_BYTES or not all(map(packs, dtypes)):
        layers = []
    try:
        for layer, dtype in zip(layers, dtypes, strict=False):
            layer.packed = pack_weight(layer.weight.to(dtype), num_rows)
        yield
    finally:
        for layer in layers:
            layer.packed = None

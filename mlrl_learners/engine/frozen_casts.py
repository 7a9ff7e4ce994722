"""Frozen weights cast to autocast's type once for many forward passes.

Autocast caches its casts of weights that require gradients. Frozen weights it casts again for every
product: a decoding step reads them in float32, writes them in bfloat16 and reads those. On a CPU
`OneDnnLinear` has packed weights instead.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from mlrl_learners.engine.onednn_layers import OneDnnLinear

__all__ = ["frozen_casts"]


@contextlib.contextmanager
def frozen_casts(model: nn.Module) -> Iterator[None]:
    """Give linear layers copies of their frozen weights in autocast's type inside the block.

    The copies take half the memory of the weights, which stay beside them. Does nothing without
    autocast, or if the weights are of its type.
    """
    layers = [
        module for module in model.modules() if type(module) in (nn.Linear, OneDnnLinear, Conv1D)
    ]
    before = [
        (layer, name, weight)
        for layer in layers
        for name, weight in layer.named_parameters(recurse=False)
        if _is_cast_each_time(weight)
    ]
    try:
        for layer, name, weight in before:
            cast = weight.to(torch.get_autocast_dtype(weight.device.type))
            setattr(layer, name, nn.Parameter(cast, requires_grad=False))
        yield
    finally:
        for layer, name, weight in before:
            setattr(layer, name, weight)


def _is_cast_each_time(weight: nn.Parameter) -> bool:
    return (
        type(weight) is nn.Parameter
        and weight.dtype == torch.float32
        and not weight.requires_grad
        and torch.is_autocast_enabled(weight.device.type)
    )

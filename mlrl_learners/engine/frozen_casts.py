"""Frozen weights cast once for many forward passes under autocast, instead of once in each.

Autocast keeps what it has cast of weights that are trained. Frozen ones it casts anew for every
product: a token a row reads them in float32, writes them in bfloat16 and reads those. `FastLinear`
needs none of this on a CPU, where its weights are packed.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from mlrl_learners.engine.onednn_layers import FastLinear

__all__ = ["frozen_casts"]


@contextlib.contextmanager
def frozen_casts(model: nn.Module) -> Iterator[None]:
    """Let linear layers read copies of their frozen weights inside the block, in autocast's type.

    The copies take half as much memory as the weights, which stay beside them. Without autocast, or
    if the weights are of its type, nothing happens.
    """
    layers = [
        module for module in model.modules() if type(module) in (nn.Linear, FastLinear, Conv1D)
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

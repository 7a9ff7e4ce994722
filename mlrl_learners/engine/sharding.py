"""Models whose weights lie in pieces on all processes (FSDP2), for those that fit on no one GPU.

A layer's weights are put together while it computes, and its gradients are summed and cut up again
right after: each process holds its piece of weights, gradients and optimizer state. Every process
must therefore compute just as often as the others; who has nothing to do computes something empty.

Source: `torch.distributed.fsdp.fully_shard`.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from mlrl_learners.processes.work_sharing import is_main, peer_errors, world

__all__ = ["compute", "is_sharded", "load_weights", "piece_of", "shard", "whole", "whole_weights"]

T = TypeVar("T")
ENTRY = "compute_sharded"


def shard(model: Any, device: str) -> None:  # noqa: ANN401 - transformers ships no types
    """Cut a model's weights up, in place; does nothing in one process.

    Args:
        model: A `transformers` causal language model, the same in all processes.
        device: Where the pieces lie; `"auto"` for a GPU where there is one.
    """
    if world().size == 1:
        return
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    mesh = init_device_mesh(torch.device(device).type, (world().size,))
    for module in model.modules():
        if type(module).__name__ in (model._no_split_modules or ()):  # noqa: SLF001 - nor public
            fully_shard(module, mesh=mesh)
    setattr(model, ENTRY, lambda work: work())
    fully_shard(model, mesh=mesh)
    register_fsdp_forward_method(model, ENTRY)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # losses are parts of one mean: summed
            module.set_force_sum_reduction_for_comms(True)


def is_sharded(model: nn.Module) -> bool:
    """Return whether the model's weights are in pieces."""
    return hasattr(model, ENTRY)


def compute(model: nn.Module, work: Callable[[], T]) -> T:
    """Do something with a model's weights, those outside of its layers included."""
    outcome: T = getattr(model, ENTRY)(work) if is_sharded(model) else work()
    return outcome


def whole(tensor: Tensor) -> Tensor:
    """Put a tensor together, in all processes; one that is in no pieces is returned as it is.

    Raises:
        PeerError: If another process ended, or does not come in time.
    """
    if not isinstance(tensor, DTensor):
        return tensor
    with peer_errors():
        return tensor.full_tensor()


def piece_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Return this process's part of a whole tensor, cut up as `like` is."""
    if not isinstance(like, DTensor) or tensor.shape != like.shape:
        return tensor
    moved = tensor.to(like.device, like.dtype)
    # All have read the same file: nothing need be sent.
    return distribute_tensor(moved, like.device_mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def whole_weights(model: nn.Module, *, everywhere: bool = False) -> dict[str, Tensor]:
    """Return a model's weights by name, in the memory of the first process, or of all.

    Every process must call it; the others get an empty mapping.
    """
    state = model.state_dict(keep_vars=True)
    together: dict[int, Tensor | None] = {}  # tied weights stay one
    for tensor in state.values():
        if id(tensor) not in together:
            found = whole(tensor)
            together[id(tensor)] = found.cpu() if everywhere or is_main() else None
    found_by_name = {name: together[id(tensor)] for name, tensor in state.items()}
    return {name: found for name, found in found_by_name.items() if found is not None}


@torch.no_grad()
def load_weights(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Take over whole weights; every process brings the same.

    Raises:
        RuntimeError: If they are those of another model.
    """
    mine = model.state_dict()
    pieces = {name: piece_of(tensor, mine.get(name, tensor)) for name, tensor in state.items()}
    model.load_state_dict(pieces)

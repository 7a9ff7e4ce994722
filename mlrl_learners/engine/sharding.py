"""Models whose weights are sharded over all processes (FSDP2), for models too large for one GPU.

The weights of a layer are gathered while it computes, and its gradients are reduced and sharded
right after: each process holds its shard of weights, gradients and optimizer state. Every process
must therefore run the same number of forward and backward passes; one without work runs empty ones.

Source: `torch.distributed.fsdp.fully_shard`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from mlrl_learners.errors import CheckpointError
from mlrl_learners.processes.work_sharing import exchange, is_main, peer_errors, world

__all__ = [
    "agree_all",
    "agree_max",
    "compute",
    "is_sharded",
    "load_weights",
    "piece_of",
    "read_weights",
    "save_weights",
    "shard",
    "whole",
    "whole_copy",
    "whole_weights",
]

T = TypeVar("T")
ENTRY = "compute_sharded"


def shard(model: Any, device: str) -> None:  # noqa: ANN401 - transformers ships no types
    """Shard a model's weights in place; does nothing in a single process.

    Args:
        model: A `transformers` causal language model, the same in all processes.
        device: Device of the shards; `"auto"` for a GPU if there is one.
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
    """Return whether `shard` has sharded the model's weights."""
    return hasattr(model, ENTRY)


def compute(model: nn.Module, work: Callable[[], T]) -> T:
    """Call `work` with all weights gathered, those outside of the layers included."""
    outcome: T = getattr(model, ENTRY)(work) if is_sharded(model) else work()
    return outcome


def agree_max(model: nn.Module, number: int) -> int:
    """Return the largest `number` of all processes that share the model's weights."""
    return max(exchange(number)) if is_sharded(model) else number


def agree_all(model: nn.Module, flag: bool) -> bool:
    """Return whether `flag` is true in all processes that share the model's weights."""
    return all(exchange(flag)) if is_sharded(model) else flag


def whole(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor in all processes; return any other tensor as it is.

    Raises:
        PeerError: If another process has ended or does not answer in time.
    """
    if not isinstance(tensor, DTensor):
        return tensor
    with peer_errors():
        return tensor.full_tensor()


def piece_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Return this process's shard of a whole tensor, sharded as `like` is."""
    if not isinstance(like, DTensor) or tensor.shape != like.shape:
        return tensor
    moved = tensor.to(like.device, like.dtype)
    # All processes have read the same file: nothing has to be sent.
    return distribute_tensor(moved, like.device_mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def whole_weights(model: nn.Module, *, everywhere: bool = False) -> dict[str, Tensor]:
    """Return a model's gathered weights by name, on the CPU of the first process or of all.

    Every process must call it; the others get an empty mapping unless `everywhere`.
    """
    state = model.state_dict(keep_vars=True)
    gathered: dict[int, Tensor | None] = {}  # by object: tied weights stay one tensor
    for tensor in state.values():
        if id(tensor) not in gathered:
            found = whole(tensor)
            gathered[id(tensor)] = found.cpu() if everywhere or is_main() else None
    found_by_name = {name: gathered[id(tensor)] for name, tensor in state.items()}
    return {name: found for name, found in found_by_name.items() if found is not None}


def whole_copy(model: Any, family: type[Any]) -> Any:  # noqa: ANN401
    """Return an unsharded copy of a model; every process must call it.

    Args:
        model: The model.
        family: Its class before it was sharded.
    """
    copied = family(model.config).to(next(model.parameters()).dtype)
    copied.load_state_dict(whole_weights(model, everywhere=True))
    return copied


@torch.no_grad()
def load_weights(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Copy whole weights into a model; every process must pass the same.

    Raises:
        RuntimeError: If names or shapes differ from the model's, which is not changed then.
    """
    own = model.state_dict()
    for name in sorted({*own, *state}):
        if name not in own or name not in state or own[name].shape != state[name].shape:
            raise RuntimeError(f"{name} is missing or has another shape")
    pieces = {name: piece_of(tensor, own.get(name, tensor)) for name, tensor in state.items()}
    model.load_state_dict(pieces)


def save_weights(model: Any, folder: Path) -> None:  # noqa: ANN401
    """Write a folder that `transformers` loads; every process must call it."""
    if not is_sharded(model):
        model.save_pretrained(folder)
        return
    weights = whole_weights(model)  # all processes take part, the first one writes
    if weights:
        model.save_pretrained(folder, state_dict=weights)


def read_weights(model: Any, family: type[Any], folder: Path) -> None:  # noqa: ANN401
    """Copy the weights that `save_weights` wrote into a model, sharded or not.

    Args:
        model: The model whose weights are overwritten.
        family: Its class before it was sharded.
        folder: Folder of the weights.

    Raises:
        CheckpointError: If the folder holds no weights, or those of another model.
    """
    dtype = next(model.parameters()).dtype
    try:
        saved = family.from_pretrained(folder, dtype=dtype, local_files_only=True)
        load_weights(model, saved.state_dict())
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"weights in {str(folder)!r} do not fit: {reason}") from error

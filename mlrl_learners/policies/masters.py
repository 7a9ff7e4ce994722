"""Float32 master copies of weights in lower precision.

An optimizer step is often smaller than the distance between adjacent bfloat16 numbers, so that a
bfloat16 weight would never change. Steps are applied to a float32 copy, the master, and the weight
is the rounded master.

Source: mixed-precision training (arXiv 1710.03740).
"""

import functools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from mlrl_learners.engine.sharding import piece_of

__all__ = ["MasterWeights"]


class MasterWeights:
    """Masters of the parameters whose precision is below float32.

    Hooks move gradients to the masters during the backward pass, where they accumulate in float32.

    Args:
        parameters: Trained parameters of any precision.

    Attributes:
        by_number: Masters by the index of their parameter.
        trained: Tensors that the optimizer updates: masters and other parameters, in order.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = {
            number: parameter
            for number, parameter in enumerate(parameters)
            if parameter.dtype in (torch.bfloat16, torch.float16)
        }
        self.by_number = {
            number: nn.Parameter(parameter.detach().to(torch.float32))
            for number, parameter in self._parameters.items()
        }
        self.trained = [self.by_number.get(i, each) for i, each in enumerate(parameters)]
        for number, parameter in self._parameters.items():
            take = functools.partial(_take_gradient, self.by_number[number])
            parameter.register_post_accumulate_grad_hook(take)

    def clear(self) -> None:
        """Clear gradients that were set outside of a backward pass."""
        for parameter in self._parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def read(self) -> None:
        """Copy gradients, and weights that were modified since `write`, to the masters.

        Code that loads weights therefore does not have to update the masters.
        """
        for number, parameter in self._parameters.items():
            master = self.by_number[number]
            if parameter.grad is not None:
                _take_gradient(master, parameter)
            mine, theirs = _local(master), _local(parameter)
            is_kept = mine.to(theirs.dtype) == theirs
            mine.copy_(torch.where(is_kept, mine, theirs.to(mine.dtype)))

    @torch.no_grad()
    def write(self) -> None:
        """Round the masters into the parameters."""
        for number, parameter in self._parameters.items():
            _local(parameter).copy_(_local(self.by_number[number]))

    @torch.no_grad()
    def load(self, state: Mapping[int, Tensor]) -> None:
        """Copy whole masters from a state; masters missing in it are set to the parameters.

        Raises:
            RuntimeError: If a shape differs.
        """
        for number, master in self.by_number.items():
            source = state.get(number)
            if source is None:
                _local(master).copy_(_local(self._parameters[number]))
            else:
                _local(master).copy_(_local(piece_of(source, master)))


def _take_gradient(master: Tensor, parameter: Tensor) -> None:
    """Move the gradient of a parameter to its master."""
    if parameter.grad is None:
        return
    gradient = parameter.grad.to(torch.float32)
    parameter.grad = None
    master.grad = gradient if master.grad is None else master.grad.add_(gradient)


def _local(tensor: Tensor) -> Tensor:
    """Return this process's shard, in the same memory."""
    found: Tensor = tensor.detach()
    return found.to_local() if isinstance(found, DTensor) else found

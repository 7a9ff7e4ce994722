"""Float32 masters of weights in lower precision.

A step of an optimizer is often smaller than the distance from one bfloat16 number to the next: a
weight in bfloat16 would stay where it is, however many steps went the same way. So steps are taken
by a copy in float32, the master, and the weight is the master rounded.

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
    """The masters of those parameters whose precision is below float32.

    Gradients move to the masters as the backward pass makes them, and add up in float32.

    Args:
        parameters: What is trained, of any precision.

    Attributes:
        trained: What an optimizer must step: masters, and the other parameters, in their order.
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
        """Forget gradients that did not come from a backward pass."""
        for parameter in self._parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def read(self) -> None:
        """Take over gradients, and weights that were written by others since `write`.

        Code that loads weights therefore need not update the masters.
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
        """Take over whole masters; those that are not there start from the parameters.

        Raises:
            RuntimeError: If one is of another shape.
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
    """Return this process's piece, in the same memory."""
    found: Tensor = tensor.detach()
    return found.to_local() if isinstance(found, DTensor) else found

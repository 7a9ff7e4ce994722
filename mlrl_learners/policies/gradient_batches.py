"""Micro-batches of an optimizer step, and the sum of their gradients over all processes.

Floating-point addition is not associative: a sum of gradients depends on the order of its terms. On
a CPU the terms are always added one after another in the order of the micro-batches, which is what
`backward` does in a single process, so that the result has the same bits for every number of
processes:

    one process      ((g0 + g1) + g2) + g3
    two processes    both compute (g0, g1) at the same time, add g0 and then g1, and go on with
                     (g2, g3)

Every process receives every gradient; on a CPU this costs little compared to computing them. On
GPUs, and with sharded weights, each process adds its own gradients and one reduction sums them.
"""

from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from mlrl_learners.engine import TokenRow, sharding
from mlrl_learners.policies.optimizer import PolicyOptimizer
from mlrl_learners.policies.policy import Policy
from mlrl_learners.processes.work_sharing import exchange, gather_tensor, world

__all__ = ["OrderedSums", "gradient_batches"]


class OrderedSums:
    """Gradients of some tensors, summed over processes in the order of the micro-batches.

    Gradients are moved to separate sums after each micro-batch, which takes four more bytes per
    weight.

    Args:
        tensors: The tensors, the same in all processes, none of which has a gradient.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._sums: list[Tensor | None] = [None] * len(tensors)

    @torch.no_grad()
    def add(self) -> None:
        """Add the gradients of one micro-batch of each process, by rank, and clear them.

        A tensor without a gradient adds nothing, as in a backward pass that does not reach it.
        """
        present = exchange([tensor.grad is not None for tensor in self._tensors])
        for number, tensor in enumerate(self._tensors):
            ranks = [rank for rank, found in enumerate(present) if found[number]]
            if not ranks:
                continue
            gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
            gathered = gather_tensor(gradient)
            for rank in ranks:
                self._add(number, gathered[rank])
            tensor.grad = None

    def write(self) -> None:
        """Set the gradients of the tensors to the sums."""
        for tensor, total in zip(self._tensors, self._sums, strict=True):
            tensor.grad = total

    def _add(self, number: int, gradient: Tensor) -> None:
        total = self._sums[number]
        if total is None:
            # In the memory layout that `backward` uses: norms are summed in its order.
            self._sums[number] = torch.empty_like(self._tensors[number]).copy_(gradient)
        else:
            total.add_(gradient)


def gradient_batches(
    policy: Policy,
    rows: Sequence[TokenRow],
    max_tokens: int,
    optimizers: Collection[PolicyOptimizer],
) -> Iterator[tuple[int, list[int]]]:
    """Yield this process's micro-batches of one optimizer step.

    The caller computes the gradients of a micro-batch before it takes the next one. At the end of
    the iteration every process has the sum of all gradients, and `PolicyOptimizer.step` may follow.

    Args:
        policy: Policy that computes the rows.
        rows: Prompts and completions, the same in all processes.
        max_tokens: Maximum number of tokens per forward pass.
        optimizers: Optimizers of the weights that receive gradients; no weight has a gradient yet.

    Yields:
        Index of the micro-batch, unique across processes, and the indices of its rows. With sharded
        weights a process may get a micro-batch without rows.

    Raises:
        PeerError: If another process failed, ended, or did not answer in time.
    """
    rank, size = world().rank, world().size
    if size == 1 or policy.device.type != "cpu" or sharding.is_sharded(policy.model):
        for turn, batch in enumerate(policy.micro_batches(rows, max_tokens)):
            yield turn * size + rank, batch
        for optimizer in optimizers:
            optimizer.sum_gradients()
        return
    batches = policy.engine.cut(rows, max_tokens)
    sums = OrderedSums([tensor for each in optimizers for tensor in each.trained])
    # Batches are sorted by size, so that those computed at the same time take about equally long.
    for first in range(0, len(batches), size):
        if first + rank < len(batches):
            yield first + rank, batches[first + rank]
        sums.add()
    sums.write()

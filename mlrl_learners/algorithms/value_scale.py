"""Scale of a critic's values: that of the returns, or the moving one of PopArt.

With PopArt, the head of a critic estimates (return - mean) / deviation, and everything outside of
the value loss sees returns. Source: `mlrl_learners.functional.value_normalization`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from mlrl_learners.functional.value_normalization import ValueStatistics, rescaled_head

__all__ = ["ValueScale"]


class ValueScale:
    """Statistics of the value targets of a critic, and the head that is rescaled with them.

    Args:
        head: Linear head of the critic, with one output per value, V.
    """

    def __init__(self, head: nn.Linear) -> None:
        self._head = head
        self._statistics = ValueStatistics(head.out_features)
        self._estimated = self._statistics.known

    def to_returns(self, values: Tensor) -> Tensor:
        """Return outputs of the head in the scale of the returns, `[B, V]`."""
        columns = torch.arange(values.shape[1]).expand(values.shape)
        return self._statistics.denormalize(values, columns)

    @torch.no_grad()
    def adapt(self, targets: Tensor, columns: Tensor, weights: Tensor) -> None:
        """Add the targets of an update, and rescale the head so that its values stay equal.

        Args:
            targets: Targets in the scale of the returns, `[B]`.
            columns: Index of the value that each target is for, `[B]`.
            weights: Weight of each target, `[B]`.
        """
        statistics = self._statistics
        before, self._estimated = (statistics.mean, statistics.std), statistics.known
        statistics.update(targets, columns, weights)
        weight, bias = rescaled_head(
            self._head.weight,
            self._head.bias,
            before,
            (statistics.mean, statistics.std),
            self._estimated,
        )
        self._head.weight.copy_(weight)
        self._head.bias.copy_(bias)

    def normalize(self, targets: Tensor, columns: Tensor) -> Tensor:
        """Return targets in the scale of the head, `[B]`."""
        return self._statistics.normalize(targets, columns)

    def normalize_old(self, values: Tensor, columns: Tensor) -> Tensor:
        """Return values from before the update in the scale of the head, `[B]`.

        Outputs of the head from before its first targets stay what they are.
        """
        estimated = self._estimated[columns.cpu()].to(values.device)
        return torch.where(estimated, self._statistics.normalize(values, columns), values)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the statistics."""
        return self._statistics.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state_dict` returned."""
        self._statistics.load_state_dict(state)
        self._estimated = self._statistics.known

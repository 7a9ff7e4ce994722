"""PopArt: value targets normalised by moving statistics, with the outputs of the head preserved.

A critic learns (target - mean) / deviation, so that its loss, learning rate and value clip do not
depend on the scale of the rewards. When the statistics change, the value head is rescaled, so that
its values in the scale of the rewards stay what they were.

Source: PopArt (arXiv 1602.07714, eq. 6 and proposition 1), used by MAPPO (arXiv 2103.01955).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from mlrl_learners.errors import ConfigError

__all__ = ["ValueStatistics", "rescaled_head"]


class ValueStatistics:
    """Moving mean and deviation of value targets, for each of V values.

    The first and second moments are exponential averages with the weight of missing updates divided
    out (bias correction), so that they are means of the targets from the first update on. Before
    it, the mean is 0 and the deviation 1.

    Args:
        num_values: Number of values, V.
        decay: Weight of the moments before an update, in [0, 1); 0.99999 in MAPPO, which with the
            bias correction is nearly the mean over all updates.
        min_std: Smallest deviation, above 0; targets without spread would be divided by 0.

    Raises:
        ConfigError: If `decay` or `min_std` is outside its range.
    """

    def __init__(self, num_values: int, *, decay: float = 0.99999, min_std: float = 1e-4) -> None:
        if not 0 <= decay < 1:
            raise ConfigError(f"decay must be in [0, 1), got {decay}")
        if not min_std > 0:
            raise ConfigError(f"min_std must be above 0, got {min_std}")
        self._decay, self._min_std = decay, min_std
        self._first = torch.zeros(num_values, dtype=torch.float64)
        self._second = torch.zeros(num_values, dtype=torch.float64)
        self._weight = torch.zeros(num_values, dtype=torch.float64)

    @property
    def mean(self) -> Tensor:
        """Mean of the targets, float64 `[V]`."""
        return self._first / self._weight.where(self._weight > 0, 1.0)

    @property
    def known(self) -> Tensor:
        """Whether each value has had a target, bool `[V]`."""
        return self._weight > 0

    @property
    def std(self) -> Tensor:
        """Standard deviation of the targets, at least `min_std`, float64 `[V]`."""
        square = self._second / self._weight.where(self._weight > 0, 1.0)
        std = (square - self.mean.square()).clamp(min=0).sqrt().clamp(min=self._min_std)
        return std.where(self.known, 1.0)

    def update(self, targets: Tensor, columns: Tensor, weights: Tensor | None = None) -> None:
        """Add the targets of an update; values without a target keep their statistics.

        Args:
            targets: Targets in the scale of the rewards, `[B]`.
            columns: Index of the value that each target is for, `[B]`.
            weights: Weight of each target, at least 0, `[B]`; 1 by default.
        """
        targets = targets.detach().double().cpu()
        columns = columns.cpu()
        weights = torch.ones_like(targets) if weights is None else weights.double().cpu()
        totals = torch.zeros_like(self._weight).index_add(0, columns, weights)
        seen = totals > 0
        kept = torch.ones_like(totals).where(~seen, self._decay)
        self._weight = kept * self._weight + (1 - kept)
        for moment, values in ((self._first, targets), (self._second, targets.square())):
            sums = torch.zeros_like(totals).index_add(0, columns, weights * values)
            moment.copy_(kept * moment + (1 - kept) * sums / totals.where(seen, 1.0))

    def normalize(self, values: Tensor, columns: Tensor) -> Tensor:
        """Return (value - mean) / std of values in the scale of the rewards, `[B]`."""
        mean, std = self._of(columns, values)
        return (values - mean) / std

    def denormalize(self, values: Tensor, columns: Tensor) -> Tensor:
        """Return value * std + mean of values of the head, `[B]`."""
        mean, std = self._of(columns, values)
        return values * std + mean

    def state_dict(self) -> dict[str, Tensor]:
        """Return the moments and their weight, each `[V]`."""
        moments = {"first": self._first, "second": self._second, "weight": self._weight}
        return {name: moment.clone() for name, moment in moments.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state_dict` returned."""
        for moment, name in (
            (self._first, "first"),
            (self._second, "second"),
            (self._weight, "weight"),
        ):
            moment.copy_(state[name])

    def _of(self, columns: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        places = columns.cpu()
        return self.mean[places].to(like), self.std[places].to(like)


def rescaled_head(
    weight: Tensor,
    bias: Tensor,
    before: tuple[Tensor, Tensor],
    after: tuple[Tensor, Tensor],
    known: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the weight and bias with which a linear head has the same denormalised values.

    With (m, s) the mean and deviation before, (m', s') after: W' = s / s' W and
    b' = (s b + m - m') / s'. Outputs are then preserved for every input. The moments of an adaptive
    optimizer are not rescaled, as in the paper.

    Args:
        weight: W, `[V, H]`.
        bias: b, `[V]`; a head without a bias cannot preserve its outputs.
        before: m and s, `[V]` each.
        after: m' and s', `[V]` each.
        known: Values to preserve, bool `[V]`, which is `ValueStatistics.known` from before the
            update; all by default. Outputs without statistics were no estimates: a head of zeros
            would start at -m / s instead of the mean.
    """
    (mean, std), (new_mean, new_std) = (
        (m.to(weight.device, torch.float64), s.to(weight.device, torch.float64))
        for m, s in (before, after)
    )
    kept = torch.zeros_like(std).bool() if known is None else ~known.to(weight.device)
    scale = (std / new_std).where(~kept, 1.0)
    new_bias = ((std * bias.double() + mean - new_mean) / new_std).where(~kept, bias.double())
    return (scale[:, None] * weight.double()).to(weight), new_bias.to(bias)

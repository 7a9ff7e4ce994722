"""Dynamic scale of a loss whose gradients pass through float16.

float16 has no numbers between 0 and 6e-8, and none above 65504. So that small gradients do not
become 0, the loss is multiplied by a scale before the backward pass, and its gradients are divided
by it in float32, before they are clipped. If a gradient is not finite, the step is skipped and the
scale halved; after `GROWTH_STEPS` steps in a row it is doubled.

Scales are powers of two, so that they change no digit of a gradient.

Source: mixed-precision training (Micikevicius et al., 2018, arXiv 1710.03740, section 3.2).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from mlrl_learners.errors import NumericsError

__all__ = ["LossScale"]

# Chosen for mlrl. torch.amp.GradScaler starts at 2^16 and doubles after 2000 steps; an update has
# few steps, a skipped one wastes its rollouts, and most runs have less than 2000.
INITIAL = 2.0**12
GROWTH_STEPS = 200


class LossScale:
    """Scale of the losses of one policy.

    Optimizers whose gradients come from one loss share its scale, which is adapted when all of them
    have reported a step.

    Args:
        is_active: Whether gradients pass through float16; otherwise the scale stays 1, and
            gradients that are not finite are errors.

    Attributes:
        value: The scale, a power of two, at least 1.
        num_skipped: Steps with an overflow so far.
        num_optimizers: Optimizers that share the scale.
    """

    def __init__(self, *, is_active: bool = False) -> None:
        self.is_active = is_active
        self.value = INITIAL if is_active else 1.0
        self.num_skipped = 0
        self.num_optimizers = 0
        self._good_steps = 0
        self._reports: list[bool] = []

    def scaled(self, loss: Tensor) -> Tensor:
        """Return the loss whose gradients are accumulated."""
        return loss * self.value if self.is_active else loss

    @torch.no_grad()
    def unscale(self, parameters: Sequence[Tensor]) -> None:
        """Divide accumulated float32 gradients by the scale."""
        if not self.is_active:
            return
        for parameter in parameters:
            if parameter.grad is not None:
                _local(parameter.grad).mul_(1.0 / self.value)

    def begin_update(self) -> None:
        """Forget the reports of an update that failed."""
        self._reports.clear()

    def report(self, *, is_finite: bool) -> None:
        """Count a step of an optimizer, and adapt the scale after that of the last one.

        Args:
            is_finite: Whether all gradients of the step were finite; otherwise it was skipped.

        Raises:
            NumericsError: If gradients are not finite at scale 1.
        """
        if not self.is_active:
            return
        self._reports.append(is_finite)
        if len(self._reports) >= self.num_optimizers:
            are_finite = all(self._reports)
            self._reports.clear()
            if are_finite:
                self._grow()
            else:
                self._shrink()

    def _grow(self) -> None:
        self._good_steps += 1
        if self._good_steps >= GROWTH_STEPS:
            self.value, self._good_steps = 2 * self.value, 0

    def _shrink(self) -> None:
        if self.value <= 1.0:
            raise NumericsError(
                "gradients overflow float16 without a loss scale: take compute.dtype bfloat16 or "
                "float32, or smaller rewards"
            )
        self.value, self._good_steps = self.value / 2, 0
        self.num_skipped += 1

    def metrics(self, prefix: str) -> dict[str, float]:
        """Return the scale and the number of skipped steps; nothing if it is not active.

        Args:
            prefix: Start of the names, such as `writer/`.
        """
        if not self.is_active:
            return {}
        found = {"loss_scale": self.value, "skipped_steps": float(self.num_skipped)}
        return {f"{prefix}{name}": value for name, value in found.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return everything that `load_state_dict` needs."""
        return {
            "value": self.value,
            "good_steps": self._good_steps,
            "num_skipped": self.num_skipped,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned, if the scale is active."""
        if self.is_active:
            self.value = float(state["value"])
            self._good_steps = int(state["good_steps"])
            self.num_skipped = int(state["num_skipped"])


def _local(gradient: Tensor) -> Tensor:
    """Return this process's shard, in the same memory."""
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient

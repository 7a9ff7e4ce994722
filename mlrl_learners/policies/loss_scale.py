"""Dynamic loss scaling for gradients that pass through float16.

float16 underflows below 6e-8 and overflows above 65504. To keep small gradients from underflowing,
the loss is multiplied by a scale before the backward pass, and the gradients are divided by it in
float32 before clipping. If a gradient is not finite, the optimizer step is skipped and the scale is
halved; after `GROWTH_STEPS` steps in a row without an overflow it is doubled.

Scales are powers of two, so that scaling does not round gradients.

Source: mixed-precision training (Micikevicius et al., 2018, arXiv 1710.03740, section 3.2).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from mlrl_learners.errors import NumericsError

__all__ = ["LossScale"]

# torch.amp.GradScaler starts at 2^16 and doubles after 2000 steps. Both are smaller here: an update
# has few steps, a skipped one wastes its rollouts, and most runs have fewer than 2000 steps.
INITIAL = 2.0**12
GROWTH_STEPS = 200


class LossScale:
    """Scale of the losses of one policy.

    Optimizers whose gradients come from the same loss share one scale, which is updated once all of
    them have reported a step.

    Args:
        is_active: Whether gradients pass through float16; otherwise the scale stays 1, and
            gradients that are not finite are errors.

    Attributes:
        value: The scale, a power of two, at least 1.
        num_skipped: Number of steps skipped because of an overflow.
        num_optimizers: Number of optimizers that share the scale.
    """

    def __init__(self, *, is_active: bool = False) -> None:
        self.is_active = is_active
        self.value = INITIAL if is_active else 1.0
        self.num_skipped = 0
        self.num_optimizers = 0
        self._good_steps = 0
        self._reports: list[bool] = []

    def scaled(self, loss: Tensor) -> Tensor:
        """Return the loss times the scale, for the backward pass."""
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
        """Discard the reports of an earlier update that failed."""
        self._reports.clear()

    def report(self, *, is_finite: bool) -> None:
        """Report a step of one optimizer; update the scale once all optimizers have reported.

        Args:
            is_finite: Whether all gradients of the step were finite; otherwise it is skipped.

        Raises:
            NumericsError: If gradients are not finite although the scale is 1.
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
        """Return the scale and the number of skipped steps; empty if the scale is not active.

        Args:
            prefix: Prefix of the names, such as `writer/`.
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

"""Batches whose rows are computed with different adapters, as sampling for a whole team has them.

The adapters of a layer are laid side by side as one of higher rank, of which each row keeps its own
part: two small products a layer serve any number of adapters.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mlrl_learners.engine.kernels.onednn import linear

__all__ = ["AdapterMix", "AdapterRows"]


class AdapterRows:
    """Which adapter each row of a batch computes with.

    Args:
        mix: The adapters in use.
        ids: For each row, the place of its adapter among them, -1 for none.
    """

    def __init__(self, mix: "AdapterMix", ids: Tensor) -> None:
        self._mix, self._ids = mix, ids

    def __getitem__(self, rows: Tensor | list[int]) -> "AdapterRows":
        """Return some of the rows."""
        return AdapterRows(self._mix, self._ids[rows])

    def repeat(self, times: int) -> "AdapterRows":
        """Return every row `times` times."""
        return AdapterRows(self._mix, self._ids.repeat_interleave(times))

    def use(self) -> None:
        """Let the next forward passes have these rows."""
        self._mix.select(self._ids)


class AdapterMix:
    """Adapters laid side by side, for batches whose rows use different ones."""

    def __init__(self, keys: Sequence[str], rank: int, device: torch.device) -> None:
        self._keys = keys
        self._owners = torch.arange(len(keys), device=device).repeat_interleave(rank)  # [N * r]
        self._mask: Tensor | None = None  # [B, 1, N * r]; None where all rows use all there is
        self._weights: dict[Any, tuple[Tensor, Tensor]] = {}

    def select(self, ids: Tensor) -> None:
        """Let the next forward passes have rows of these adapters, `[B]`."""
        mask = ids[:, None] == self._owners
        self._mask = None if bool(mask.all()) else mask[:, None]

    def add(self, layer: Any, rows: Tensor, output: Tensor) -> Tensor:  # noqa: ANN401
        """Return `output` and what adapters make of `rows`, `[B, S, in] -> [B, S, out]`."""
        if not self._keys:
            return output
        if layer not in self._weights:
            self._weights[layer] = self._lay_out(layer)
        down, up = self._weights[layer]
        low = linear(rows.to(down.dtype), down)  # [B, S, N * r]
        if self._mask is not None:
            low = low * self._mask
        return output + linear(low, up).to(output.dtype)

    def _lay_out(self, layer: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        """Return a layer's adapters as one, `[N * r, in]` and `[out, N * r]`."""
        down = torch.cat([layer.lora_A[key].weight for key in self._keys])
        up = torch.cat([layer.lora_B[key].weight * layer.scaling[key] for key in self._keys], 1)
        kind = down.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else down.dtype
        return down.to(dtype), up.to(dtype)

"""Batches whose rows use different adapters, as in sampling for a whole team.

The adapters of a layer are concatenated to one of higher rank, and each row masks out all parts but
its own: two small products per layer serve any number of adapters.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mlrl_learners.engine.kernels.onednn import linear

__all__ = ["AdapterMix", "AdapterRows"]


class AdapterRows:
    """Adapter of each row of a batch.

    Args:
        mix: The adapters in use.
        ids: Index of each row's adapter in the mix, -1 for none, `[B]`.
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
        """Compute the next forward passes with the adapters of these rows."""
        self._mix.select(self._ids)


class AdapterMix:
    """Concatenated adapters, for batches whose rows use different ones.

    Args:
        keys: Names of the adapters in `peft`'s layers.
        rank: Rank of each, r.
        device: Device of the model.
    """

    def __init__(self, keys: Sequence[str], rank: int, device: torch.device) -> None:
        self._keys = keys
        self._owners = torch.arange(len(keys), device=device).repeat_interleave(rank)  # [N * r]
        self._mask: Tensor | None = None  # [B, 1, N * r]; None if all rows use the only adapter
        self._weights: dict[Any, tuple[Tensor, Tensor]] = {}

    def select(self, ids: Tensor) -> None:
        """Compute the next forward passes with these adapters, `[B]`."""
        mask = ids[:, None] == self._owners
        self._mask = None if bool(mask.all()) else mask[:, None]

    def add(self, layer: Any, rows: Tensor, output: Tensor) -> Tensor:  # noqa: ANN401
        """Return a layer's `output` plus its adapters' output, `[B, S, in] -> [B, S, out]`."""
        if not self._keys:
            return output
        if layer not in self._weights:
            self._weights[layer] = self._concatenate(layer)
        down, up = self._weights[layer]
        low = linear(rows.to(down.dtype), down)  # [B, S, N * r]
        if self._mask is not None:
            low = low * self._mask
        return output + linear(low, up).to(output.dtype)

    def _concatenate(self, layer: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        """Return a layer's adapters as one, `[N * r, in]` and `[out, N * r]`."""
        down = torch.cat([layer.lora_A[key].weight for key in self._keys])
        up = torch.cat([layer.lora_B[key].weight * layer.scaling[key] for key in self._keys], 1)
        kind = down.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else down.dtype
        return down.to(dtype), up.to(dtype)

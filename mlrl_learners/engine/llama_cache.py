"""Key-value cache of the reader for Llama's layout."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mlrl_learners.engine.growing_cache import ROOM_TOKENS

__all__ = ["LlamaCache"]


class LlamaCache:
    """Keys and values of all layers, `[B, heads, W, D]`, in buffers with room for more.

    Attributes:
        width: Tokens per row, W.
        capacity: Tokens per row that the buffers have room for.
        buffers: Keys and values of each layer; None before the first token.
    """

    def __init__(self, num_layers: int, dtype: torch.dtype) -> None:
        self.width = 0
        self._dtype = dtype
        self.capacity = 0
        self.buffers: list[tuple[Tensor, Tensor] | None] = [None] * num_layers

    def make_room(self, num_tokens: int) -> None:
        """Enlarge the buffers if `num_tokens` more tokens do not fit."""
        if self.width + num_tokens > self.capacity:
            self.capacity = self.width + num_tokens + ROOM_TOKENS
            self._copy(lambda states: states)

    def add(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values of a layer, `[B, S, heads, D]`, and return all of them."""
        buffers = self.buffers[layer]
        if buffers is None:
            rows, _, heads, size = keys.shape
            shape = (rows, heads, self.capacity, size)
            buffers = keys.new_empty(shape, dtype=self._dtype), values.new_empty(shape)
            self.buffers[layer] = buffers
        end = self.width + keys.shape[1]
        for buffer, new in zip(buffers, (keys, values), strict=True):
            buffer[:, :, self.width : end] = new.transpose(1, 2)
        return buffers[0][:, :, :end], buffers[1][:, :, :end]

    def concatenate(self, parts: "Sequence[LlamaCache]") -> None:
        """Concatenate the rows of caches of the same width, and empty these caches."""
        self.width, self.capacity = parts[0].width, parts[0].capacity
        if len(parts) == 1:
            self.buffers, parts[0].buffers = parts[0].buffers, [None] * len(self.buffers)
            return
        for number in range(len(self.buffers)):
            layers = [part.buffers[number] for part in parts]
            keys, values = zip(*(layer for layer in layers if layer is not None), strict=True)
            self.buffers[number] = torch.cat(keys), torch.cat(values)
            for part in parts:  # at most one layer is in memory twice
                part.buffers[number] = None

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row `repeats` times."""
        self._copy(lambda states: states.repeat_interleave(repeats, 0))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows `indices`."""
        self._copy(lambda states: states[indices])

    def rows(self, indices: Tensor) -> "LlamaCache":
        """Return a cache that holds copies of the rows `indices`."""
        copied = LlamaCache(len(self.buffers), self._dtype)
        copied.width, copied.capacity, copied.buffers = self.width, self.capacity, self.buffers[:]
        copied.batch_select_indices(indices)
        return copied

    def select_columns(self, columns: Tensor) -> None:
        """Keep the columns `[B, W]` of each row, in this order."""
        rows = torch.arange(len(columns))[:, None]
        self.capacity = columns.shape[1] + ROOM_TOKENS
        # [B, heads, columns, D] -> [B, W, heads, D] -> [B, heads, W, D]
        self._copy(lambda states: states.transpose(1, 2)[rows, columns].transpose(1, 2))
        self.width = columns.shape[1]

    def _copy(self, change: Callable[[Tensor], Tensor]) -> None:
        for number, buffers in enumerate(self.buffers):
            if buffers is not None:
                keys, values = (self._with_room(change(b[:, :, : self.width])) for b in buffers)
                self.buffers[number] = keys, values

    def _with_room(self, states: Tensor) -> Tensor:
        rows, heads, width, size = states.shape
        buffer = states.new_empty(rows, heads, self.capacity, size)
        buffer[:, :, :width] = states
        return buffer

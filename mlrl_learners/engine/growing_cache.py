"""Key-value cache layers that append in place.

`DynamicCache` concatenates, which copies all keys and values at every token. The layers here write
new keys and values into buffers with spare room.
"""

from torch import Tensor
from transformers import cache_utils
from transformers.cache_utils import DynamicCache, DynamicLayer

__all__ = ["grow_in_place", "holds_keys"]

ROOM_TOKENS = 128


class _BufferedLayer(DynamicLayer):
    """A `DynamicLayer` whose `keys` and `values` are views into larger buffers."""

    keys: Tensor
    values: Tensor

    def __init__(self, layer: DynamicLayer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        assert layer.keys is not None  # noqa: S101 - the layer is initialized
        assert layer.values is not None  # noqa: S101
        self.is_initialized = True
        self.dtype, self.device = layer.keys.dtype, layer.keys.device
        self._reserve(layer.keys, layer.values)

    def _reserve(self, keys: Tensor, values: Tensor) -> None:
        rows, heads, length, _ = keys.shape
        capacity = length + ROOM_TOKENS
        self._keys = keys.new_empty(rows, heads, capacity, keys.shape[-1])
        self._values = values.new_empty(rows, heads, capacity, values.shape[-1])
        self._keys[:, :, :length] = keys
        self._values[:, :, :length] = values
        self._show(length)

    def _show(self, length: int) -> None:
        self.keys = self._keys[:, :, :length]
        self.values = self._values[:, :, :length]

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Append new keys and values, `[B, heads, S, D]`, and return all of them."""
        start = self.keys.shape[2]
        end = start + key_states.shape[2]
        if end > self._keys.shape[2]:
            self._reserve(self.keys, self.values)
        self._keys[:, :, start:end] = key_states
        self._values[:, :, start:end] = value_states
        self._show(end)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows `indices`."""
        self._reserve(self.keys[indices], self.values[indices])


def grow_in_place(cache: DynamicCache) -> None:
    """Replace the `DynamicLayer`s of a filled cache; layers of other types stay as they are."""
    cache.layers = [
        _BufferedLayer(layer) if type(layer) is DynamicLayer and layer.is_initialized else layer
        for layer in cache.layers
    ]


def holds_keys(cache: DynamicCache, num_tokens: int) -> bool:
    """Return whether all layers of a filled cache hold keys of `num_tokens` tokens.

    Recurrent states, which cannot mask padding out afterwards, do not count.
    """
    kinds = getattr(cache_utils, "LinearAttentionCacheLayerMixin", ())  # of later transformers
    has_states = any(isinstance(layer, kinds) for layer in cache.layers)
    return not has_states and cache.get_seq_length() == num_tokens

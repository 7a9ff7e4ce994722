"""Reader for models of Llama's layout on a CPU, with packed weights and a cache that grows."""

from typing import Any

import torch
from torch import Tensor

from mlrl_learners.engine.llama_cache import LlamaCache
from mlrl_learners.engine.llama_layers import LlamaLayers
from mlrl_learners.engine.reader import Reader

__all__ = ["LlamaReader"]

# Prompts are read in parts of at most this many tokens, whose activations stay in the processor's
# cache from one operation to the next.
PART_TOKENS = 4096


class LlamaReader(Reader[LlamaCache]):
    """Reads with `LlamaLayers`.

    Args:
        model: A model on a CPU that `LlamaLayers.fits`.
        num_rows: Typical number of rows per read; packing is optimised for it.
    """

    look_steps = 1  # a CPU need not be waited for

    def __init__(self, model: Any, num_rows: int) -> None:  # noqa: ANN401 - transformers' types
        self._layers = LlamaLayers(model, num_rows)

    def cache(self) -> LlamaCache:
        """Return an empty cache."""
        return LlamaCache(self._layers.num_layers, self._layers.dtype)

    def read(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: LlamaCache
    ) -> Tensor:
        """Append tokens to the cache and return the logits after the last one, `[B, V]`."""
        num_rows = max(1, PART_TOKENS // ids.shape[1])
        if cache.width or len(ids) <= num_rows:
            return self._read_rows(ids, padding_mask, positions, cache)
        caches, logits = [], []
        for start in range(0, len(ids), num_rows):
            part = slice(start, start + num_rows)
            mask = None if padding_mask is None else padding_mask[part]
            caches.append(self.cache())
            logits.append(self._read_rows(ids[part], mask, positions[part], caches[-1]))
        cache.concatenate(caches)
        return torch.cat(logits)

    def _read_rows(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: LlamaCache
    ) -> Tensor:
        if padding_mask is not None and not cache.width and bool(padding_mask.all()):
            padding_mask = None  # causal attention without a mask is faster
        mask = _attention_mask(padding_mask, ids.shape[1], cache.width, self._layers.dtype)
        cache.make_room(ids.shape[1])
        logits = self._layers(ids, positions, mask, cache)
        cache.width += ids.shape[1]
        return logits


def _attention_mask(
    padding_mask: Tensor | None, new: int, width: int, dtype: torch.dtype
) -> Tensor | None:
    """Return what is added to scores, `[B, 1, S, W + S]`; None for causal attention."""
    if padding_mask is None:
        if width and new > 1:
            raise ValueError("several tokens after cached ones need a padding mask")
        return None
    visible = padding_mask.bool()[:, None] & torch.ones(new, width + new, dtype=torch.bool).tril(
        width
    )
    # Padding positions attend to themselves, because a fully masked row would produce NaN.
    visible[:, :, width:] |= torch.eye(new, dtype=torch.bool)
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -torch.inf)[:, None]

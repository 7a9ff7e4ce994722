"""Reader for models of Llama's layout on a CPU, with packed weights and a cache that grows."""

from typing import Any

import torch
from torch import Tensor

from mlrl_learners.engine.llama_cache import LlamaCache
from mlrl_learners.engine.llama_layers import LlamaLayers
from mlrl_learners.engine.reader import Reader
from mlrl_learners.engine.shared_prompts import SharedPrompts, shared_prompts

__all__ = ["LlamaReader"]

# Prompts are read in parts of at most this many tokens, whose activations stay in the processor's
# cache from one operation to the next.
PART_TOKENS = 4096
MAX_COLUMNS_A_TOKEN = 8  # bounds the masks of parts whose rows have long stems


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
        if cache.width:
            return self._read_rows(ids, padding_mask, positions, cache)
        shared = shared_prompts(ids, padding_mask)
        if shared is not None:
            return self._read_shared(shared, cache)
        return self._read_parts(ids, padding_mask, positions, cache)

    def _read_parts(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: LlamaCache
    ) -> Tensor:
        """Read prompts, some rows at a time."""
        caches, logits = [], []
        for part in _parts(*ids.shape):
            mask = None if padding_mask is None else padding_mask[part]
            caches.append(self.cache())
            logits.append(self._read_rows(ids[part], mask, positions[part], caches[-1]))
        cache.concatenate(caches)
        return torch.cat(logits)

    def _read_shared(self, shared: SharedPrompts, cache: LlamaCache) -> Tensor:
        """Read the beginnings that prompts share, then the rest of each prompt."""
        stems = self.cache()
        self._read_parts(shared.stem_ids, shared.stem_mask, shared.stem_positions, stems)
        caches, logits = [], []
        columns, rest_width = shared.mask.shape[1], shared.rest_ids.shape[1]
        for part in _parts(len(shared.stems), max(rest_width, columns // MAX_COLUMNS_A_TOKEN)):
            rows = stems.rows(shared.stems[part])
            rest, positions = shared.rest_ids[part], shared.rest_positions[part]
            logits.append(self._read_rows(rest, shared.mask[part], positions, rows))
            rows.select_columns(shared.columns[part])
            caches.append(rows)
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


def _parts(num_rows: int, width: int) -> list[slice]:
    """Return the rows of each part of a batch."""
    size = max(1, PART_TOKENS // width)
    return [slice(start, start + size) for start in range(0, num_rows, size)]


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

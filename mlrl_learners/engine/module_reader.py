"""Reader that calls the model's own forward pass, with a key-value cache of `transformers`.

Works for every family whose cache holds keys and values, on any device, with adapters and with
sharded weights.
"""

from typing import Any

from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from mlrl_learners.engine.growing_cache import grow_in_place
from mlrl_learners.engine.reader import Reader, look_steps

__all__ = ["ModuleReader"]


class ModuleReader(Reader[DynamicCache]):
    """Reads through `model.forward`.

    Args:
        model: A `transformers` causal language model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model: Any = model
        self.look_steps = look_steps(next(model.parameters()).device)

    def cache(self) -> DynamicCache:
        """Return an empty cache with the layer types of the model's configuration."""
        return DynamicCache(config=self._model.config)

    def read(
        self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: DynamicCache
    ) -> Tensor:
        """Append tokens to the cache and return the logits after the last one, `[B, V]`."""
        if cache.get_seq_length():  # the prompts have been read and repeated
            grow_in_place(cache)
        logits: Tensor = self._model(
            input_ids=ids,
            attention_mask=padding_mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        return logits

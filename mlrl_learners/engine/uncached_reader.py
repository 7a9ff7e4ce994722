"""Reader without a KV cache, which reads whole sequences again at every step.

For state-space models (Mamba, and hybrids such as Jamba), whose recurrent state cannot mask padding
out, and for a few old families without a cache. The token ids are kept in place of keys and values
and are padded on the right, as in training, which does not affect earlier tokens of a causal model.
n tokens take n forward passes over growing sequences: O(n^2) tokens are read instead of n.
`families.keeps_cache` decides which models need it.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mlrl_learners.engine.kernels.head import head_logits
from mlrl_learners.engine.reader import Reader, look_steps
from mlrl_learners.engine.sharding import compute

__all__ = ["TokenHistory", "UncachedReader"]


class TokenHistory:
    """All tokens so far, in place of a KV cache.

    Attributes:
        ids: Token ids, `[B, W]`.
        padding_mask: 1 for tokens and 0 for padding, `[B, W]`.
    """

    def __init__(self) -> None:
        self.ids: Tensor | None = None
        self.padding_mask: Tensor | None = None

    def add(self, ids: Tensor, padding_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Append tokens `[B, S]`; return all ids and the boolean padding mask, `[B, W + S]`."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], 1)
        self.padding_mask = torch.ones_like(self.ids) if padding_mask is None else padding_mask
        return self.ids, self.padding_mask.bool()

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row `repeats` times."""
        self.ids, self.padding_mask = (
            None if part is None else part.repeat_interleave(repeats, 0)
            for part in (self.ids, self.padding_mask)
        )

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows `indices`."""
        self.ids, self.padding_mask = (
            None if part is None else part[indices] for part in (self.ids, self.padding_mask)
        )


class UncachedReader(Reader[TokenHistory]):
    """Reads every sequence from its beginning.

    Args:
        model: A `transformers` causal language model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model: Any = model
        self.look_steps = look_steps(next(model.parameters()).device)

    def cache(self) -> TokenHistory:
        """Return an empty history."""
        return TokenHistory()

    def read(
        self,
        ids: Tensor,
        padding_mask: Tensor | None,
        positions: Tensor,  # noqa: ARG002 - sequences padded on the right need none
        cache: TokenHistory,
    ) -> Tensor:
        """Append tokens to the history and return the logits after the last one, `[B, V]`."""
        ids, is_token = cache.add(ids, padding_mask)
        order = is_token.long().argsort(dim=1, descending=True, stable=True)  # padding to the end
        ids, last = ids.gather(1, order), is_token.sum(1) - 1  # [B, W + S], [B]
        return compute(self._model, lambda: self._logits(ids, last))

    def _logits(self, ids: Tensor, last: Tensor) -> Tensor:
        decoder = self._model.get_decoder()
        states: Tensor = decoder(input_ids=ids, use_cache=False).last_hidden_state  # [B, W, H]
        rows = torch.arange(len(ids), device=states.device)
        return head_logits(self._model, states[rows, last.to(states.device)])

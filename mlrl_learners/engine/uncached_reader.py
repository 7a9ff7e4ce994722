"""Decoding without a KV cache: every step reads whole sequences again.

State-space models (Mamba, and hybrids such as Jamba) keep no keys and values that padding could be
masked out of, and a few old families keep no cache at all. Here the tokens themselves are what is
kept. They are read padded on the right, as in training, which is harmless for any causal model.
Slow but correct: n tokens take n forward passes over sequences that grow, O(n^2) tokens read in
place of n. It is chosen by `families.keeps_cache`, where the cache fails a trial.
"""

from typing import Any

import torch
from torch import Tensor

from mlrl_learners.engine.kernels.head import head_logits
from mlrl_learners.engine.sharding import compute

__all__ = ["Rereader", "TokenHistory"]


class TokenHistory:
    """All tokens so far, in the place of a cache.

    Attributes:
        ids: `[B, W]`.
        seen: Which of them are tokens, and not padding, `[B, W]`.
    """

    def __init__(self) -> None:
        self.ids: Tensor | None = None
        self.seen: Tensor | None = None

    def add(self, ids: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor]:
        """Append tokens `[B, S]`; return all there are, and which are seen, `[B, W + S]`."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], 1)
        self.seen = torch.ones_like(self.ids) if seen is None else seen
        return self.ids, self.seen.bool()

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row, as caches of `transformers` do."""
        self.ids, self.seen = (
            None if part is None else part.repeat_interleave(repeats, 0)
            for part in (self.ids, self.seen)
        )

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep only some rows, likewise."""
        self.ids, self.seen = (
            None if part is None else part[indices] for part in (self.ids, self.seen)
        )


class Rereader:
    """Reads a model's sequences from their beginnings, with the interface of `PlainLlama`.

    Args:
        model: A `transformers` causal language model.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - transformers ships no types
        self._model = model

    def cache(self) -> TokenHistory:
        """Return what holds the tokens."""
        return TokenHistory()

    def read(
        self,
        ids: Tensor,
        seen: Tensor | None,
        positions: Tensor,  # noqa: ARG002 - a sequence without padding in front needs none
        cache: TokenHistory,
    ) -> Tensor:
        """Read tokens behind those before.

        Args:
            ids: `[B, S]`.
            seen: Which of all tokens so far are no padding, `[B, W + S]`; None for all.
            positions: `[B, S]`, not used.
            cache: Of W tokens a row; S more afterwards.

        Returns:
            The logits after the last token, `[B, V]`.
        """
        ids, kept = cache.add(ids, seen)
        order = kept.long().argsort(dim=1, descending=True, stable=True)  # padding goes to the end
        ids, last = ids.gather(1, order), kept.sum(1) - 1  # [B, W + S], [B]
        return compute(self._model, lambda: self._logits(ids, last))

    def _logits(self, ids: Tensor, last: Tensor) -> Tensor:
        decoder = self._model.get_decoder()
        states: Tensor = decoder(input_ids=ids, use_cache=False).last_hidden_state  # [B, W, H]
        rows = torch.arange(len(ids), device=states.device)
        return head_logits(self._model, states[rows, last.to(states.device)])

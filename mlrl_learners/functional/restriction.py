"""Distributions restricted to nuclei: what top-p and top-k left of each when a token was drawn.

Tokens are drawn from the truncated distribution q = p / p(N) on a nucleus N. Its log-probabilities
have the property that policy gradients rest on, E_q[grad log q] = 0; those of the whole
distribution p do not: E_q[grad log p] = grad log p(N), which makes nuclei likelier and sharper,
whatever is paid.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mlrl_learners.errors import ConfigError
from mlrl_learners.types import Nucleus

__all__ = ["Restriction"]


class Restriction:
    """The nuclei of a batch's tokens, one after the other, on one device.

    Of T tokens R were drawn from nuclei, which have M members in all.

    Args:
        nuclei: Those of each completion; None where tokens were drawn from the whole vocabulary.
        completions: The tokens of each.
        device: Where the scores are.

    Attributes:
        restricted: Which tokens have a nucleus, `[R]`.
        free: Which tokens have none, `[T - R]`.
        owners: For each member, whose it is, as a place in `restricted`, `[M]`.
        ids: The members as token ids, `[M]`.
        starts: Where the members of each of the R begin, and M; on the CPU.

    Raises:
        ConfigError: If a nucleus is not of the tokens of its completion.
    """

    def __init__(
        self,
        nuclei: Sequence[Nucleus | None],
        completions: Sequence[Sequence[int]],
        device: torch.device,
    ) -> None:
        pairs = list(zip(nuclei, completions, strict=True))
        found = [(each, tokens) for each, tokens in pairs if each is not None]
        chosen = _places_of_tokens(found)
        has_one = np.repeat([each is not None for each in nuclei], [len(t) for t in completions])
        sizes = np.concatenate([each.sizes for each, _ in found]).astype(np.int64)
        ids = np.concatenate([each.token_ids for each, _ in found]).astype(np.int64)
        self.starts: list[int] = [0, *sizes.cumsum().tolist()]
        self.restricted, self.free, self.owners, self.ids, self._sizes, self._chosen = (
            torch.from_numpy(part).to(device)
            for part in (
                np.flatnonzero(has_one),
                np.flatnonzero(~has_one),
                np.repeat(np.arange(len(sizes)), sizes),
                ids,
                sizes,
                chosen,
            )
        )

    @classmethod
    def of(
        cls,
        nuclei: Sequence[Nucleus | None],
        completions: Sequence[Sequence[int]],
        device: torch.device,
    ) -> "Restriction | None":
        """Return the restriction of a batch, or None where nothing in it is restricted."""
        if all(nucleus is None for nucleus in nuclei):
            return None
        return cls(nuclei, completions, device)

    def members(self, rows: slice) -> slice:
        """Return where the members of some of the R restricted tokens are."""
        return slice(self.starts[rows.start], self.starts[min(rows.stop, len(self.starts) - 1)])

    def logprobs(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return log q of the R tokens, and the entropies of q, `[R]` each.

        Args:
            scores: Logits of the members divided by the temperature, float32 `[M]`.
        """
        highest = self._reduce(scores.detach(), "max")[self.owners]
        scores = scores - highest
        logq = scores - self._reduce(scores.exp(), "sum").log()[self.owners]
        return logq[self._chosen], -self._reduce(logq.exp() * logq, "sum")

    def merge(self, restricted: Tensor, free: Tensor) -> Tensor:
        """Put what was found for tokens with and without a nucleus in order, `[T]`."""
        order = torch.cat([self.restricted, self.free]).argsort()
        return torch.cat([restricted, free])[order]

    def _reduce(self, values: Tensor, how: str) -> Tensor:
        """Reduce over each nucleus, `[M] -> [R]`, in the same order whenever it is done."""
        return torch.segment_reduce(values, how, lengths=self._sizes, unsafe=True)


def _places_of_tokens(
    found: Sequence[tuple[Nucleus, Sequence[int]]],
) -> NDArray[np.int64]:
    """Return where each token is among the members of all nuclei, `[R]`."""
    places, start = [], 0
    for nucleus, tokens in found:
        if len(nucleus.sizes) != len(tokens):
            raise ConfigError(
                f"a nucleus has one size a token, got {len(nucleus.sizes)} for {len(tokens)} tokens"
            )
        owners = np.repeat(np.array(tokens), nucleus.sizes)
        inside = np.flatnonzero(owners == nucleus.token_ids)
        if len(inside) != len(tokens):
            raise ConfigError("a nucleus must contain the sampled token exactly once")
        places.append(start + inside)
        start += len(owners)
    return np.concatenate(places)

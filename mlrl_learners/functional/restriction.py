"""Token distributions restricted to the nuclei of top-p and top-k sampling.

Tokens are sampled from the truncated distribution q = p / p(N) on a nucleus N. Policy gradients
need E_q[grad log q] = 0, which holds for q. For the whole distribution p it does not:
E_q[grad log p] = grad log p(N), which would make nuclei more likely whatever the reward.
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
    """Nuclei of a batch's tokens, packed on one device.

    Of T tokens, R were sampled from nuclei with M members in total.

    Args:
        nuclei: Nuclei of each completion; None if its tokens were sampled from the whole
            vocabulary.
        completions: Token ids of each completion.
        device: Device of the scores.

    Attributes:
        restricted: Indices of the tokens with a nucleus, `[R]`.
        free: Indices of the tokens without one, `[T - R]`.
        owners: Position in `restricted` that each member belongs to, `[M]`.
        ids: Token ids of the members, `[M]`.
        starts: Index of the first member of each of the R tokens, followed by M; on the CPU.

    Raises:
        ConfigError: If a nucleus does not fit the tokens of its completion.
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
        """Return the restriction of a batch, or None if none of its tokens is restricted."""
        if all(nucleus is None for nucleus in nuclei):
            return None
        return cls(nuclei, completions, device)

    def members(self, rows: slice) -> slice:
        """Return the range of members of a range of the R restricted tokens."""
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
        """Return values of tokens with and without a nucleus in the order of the batch, `[T]`."""
        order = torch.cat([self.restricted, self.free]).argsort()
        return torch.cat([restricted, free])[order]

    def _reduce(self, values: Tensor, how: str) -> Tensor:
        """Reduce over each nucleus, `[M] -> [R]`, in a deterministic order."""
        return torch.segment_reduce(values, how, lengths=self._sizes, unsafe=True)


def _places_of_tokens(
    found: Sequence[tuple[Nucleus, Sequence[int]]],
) -> NDArray[np.int64]:
    """Return the index of each sampled token among the members of all nuclei, `[R]`."""
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

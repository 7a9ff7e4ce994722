"""Interface between the decoding loop and the ways of running a model's forward pass."""

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

__all__ = ["Cache", "Reader", "look_steps"]

ALIVE_SHARE = 0.75  # compacting copies the cache: worth it once a quarter of the rows have ended
LOOK_STEPS = 16  # on a GPU; must divide `static_reader.ROOM_TOKENS`


class Cache(Protocol):
    """State of the rows of a batch between two forward passes, such as keys and values."""

    def batch_repeat_interleave(self, repeats: int) -> Any:  # noqa: ANN401 - of transformers
        """Repeat every row `repeats` times, in place."""
        ...

    def batch_select_indices(self, indices: Tensor) -> Any:  # noqa: ANN401
        """Keep the rows `indices`, `[B]`, in place."""
        ...


C = TypeVar("C")


class Reader(Protocol[C]):
    """Computes next-token logits of a batch, one or more tokens at a time.

    Attributes:
        look_steps: Number of steps between two checks for ended rows.
    """

    look_steps: int

    def cache(self) -> C:
        """Return an empty cache."""
        ...

    def read(self, ids: Tensor, padding_mask: Tensor | None, positions: Tensor, cache: C) -> Tensor:
        """Append tokens to the cache and return the logits after the last one.

        The first call passes the prompts, padded on the left; every later call passes one token
        per row.

        Args:
            ids: Token ids, `[B, S]`.
            padding_mask: 1 for tokens and 0 for padding, over the W tokens in the cache and the S
                new ones, `[B, W + S]`; None if there is no padding.
            positions: Position ids, `[B, S]`.
            cache: Holds W tokens per row, and W + S afterwards.

        Returns:
            Logits, `[B, V]`; valid until the next call.
        """
        ...

    def max_alive_share(self, cache: C) -> float:  # noqa: ARG002 - readers may depend on it
        """Return the share of unfinished rows, in [0, 1], up to which ended rows are removed.

        0 keeps all rows at this step.
        """
        return ALIVE_SHARE


def look_steps(device: torch.device) -> int:
    """Return how many steps pass between two checks for ended rows.

    Each check waits for the device, which is free on a CPU only.
    """
    return 1 if device.type == "cpu" else LOOK_STEPS

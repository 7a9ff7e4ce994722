"""Minibatches: the items of each optimizer step of an update."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

__all__ = ["minibatches"]

ItemT = TypeVar("ItemT")


def minibatches(
    items: Sequence[ItemT], *, epochs: int, number: int, generator: torch.Generator
) -> Iterator[list[ItemT]]:
    """Yield the items of each optimizer step: all, or shuffled parts of similar size.

    Args:
        items: Items of the update.
        epochs: How often each item is used.
        number: Parts of an epoch; at most one for each item.
        generator: Shuffles the items in each epoch, if there are several parts.
    """
    parts = min(number, len(items))
    for _ in range(epochs):
        if parts == 1:
            yield list(items)
            continue
        order = torch.randperm(len(items), generator=generator).tolist()
        yield from ([items[i] for i in order[part::parts]] for part in range(parts))

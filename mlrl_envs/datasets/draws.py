"""Deterministic random numbers, equal in every process and every version of Python.

They are derived from SHA-256, because `random` guarantees stable results for `random()` only.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["Draws"]

ItemT = TypeVar("ItemT")


class Draws:
    """A stream of random numbers.

    Args:
        key: The seed; equal keys give equal streams.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._count = 0

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        digest = hashlib.sha256(f"{self._key}/{self._count}".encode()).digest()
        self._count += 1
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)

    def pick(self, items: Sequence[ItemT]) -> ItemT:
        """Return one of the items."""
        return items[self.integer(0, len(items) - 1)]

    def pick_two(self, items: Sequence[ItemT]) -> tuple[ItemT, ItemT]:
        """Return two different items."""
        first = self.integer(0, len(items) - 1)
        second = self.integer(0, len(items) - 2)
        return items[first], items[second + (second >= first)]

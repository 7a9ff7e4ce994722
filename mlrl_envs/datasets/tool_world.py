"""Invented names, words and numbers of generated tool tasks, disjoint between the splits.

A hash of each name, word or number decides whether it belongs to `eval` or to the other splits.
Tasks draw everything that varies from `World`, so that no name, no number and no answer of a
training task occurs in a task of `eval`.
"""

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

__all__ = ["World", "belongs"]

EVAL_SHARE = 3  # one value in three belongs to the split `eval`
_STARTS = ("Ar", "Bel", "Cor", "Dun", "El", "Fen", "Gar", "Hol", "Is", "Jor", "Kel", "Lor", "Mer")
_MIDDLES = ("a", "be", "di", "e", "ga", "i", "la", "mo", "ne", "o", "ri", "su", "ta", "u", "ve")
_ENDS = ("beck", "dal", "fel", "gard", "holm", "lin", "mar", "nor", "rick", "stad", "ther", "wen")
_GOODS = (
    *("amber", "barley", "brass", "candles", "cedar", "chalk", "cider", "clay", "copper", "cork"),
    *("felt", "flax", "glass", "hemp", "honey", "lead", "linen", "malt", "oats", "paper"),
    *("peat", "pepper", "pitch", "resin", "rope", "rye", "salt", "sand", "silk", "slate"),
    *("soap", "sugar", "tallow", "tar", "tea", "tiles", "tin", "wax", "wine", "wool"),
)
ItemT = TypeVar("ItemT")


def belongs(value: str, split: str) -> bool:
    """Return whether a name, a word or a number may be used in the tasks of a split."""
    is_eval = hashlib.sha256(value.encode()).digest()[0] % EVAL_SHARE == 0
    return is_eval == (split == "eval")


class World:
    """The source of everything that varies between tasks.

    Only `random()` is used of the generator, because Python guarantees no other of its sequences.

    Args:
        key: The seed; equal keys give equal values in every process and every version of Python.
        split: The split that all values belong to.
    """

    def __init__(self, key: str, split: str) -> None:
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest(), "big")
        self._draw = random.Random(seed).random  # noqa: S311  no secrets
        self._split = split
        self._used: set[str] = set()

    def integer(self, low: int, high: int) -> int:
        """Return any integer from `low` to `high`, both included."""
        return low + int(self._draw() * (high - low + 1))

    def pick(self, items: Sequence[ItemT]) -> ItemT:
        """Return one of the items."""
        return items[int(self._draw() * len(items))]

    def number(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high` that belongs to the split."""
        return self.pick(_numbers(low, high, self._split))

    def half(self, low: int, high: int) -> float:
        """Return a number that ends in .5; its integer part belongs to the split."""
        return self.number(low, high) + 0.5

    def name(self) -> str:
        """Return an invented name that the task has not used yet."""
        return self._new(_names(self._split))

    def person(self) -> str:
        """Return an invented full name."""
        return f"{self.name()} {self.name()}"

    def good(self) -> str:
        """Return a sort of goods that the task has not used yet."""
        return self._new(_goods(self._split))

    def code(self, prefix: str) -> str:
        """Return a code such as KX-311 that the task has not used yet."""
        return self._new(_codes(prefix, self._split))

    def shuffled(self, items: Sequence[ItemT]) -> list[ItemT]:
        """Return the items in another order."""
        left = list(items)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in items]

    def _new(self, pool: Sequence[str]) -> str:
        while (value := self.pick(pool)) in self._used:
            pass
        self._used.add(value)
        return value


@lru_cache(maxsize=4096)
def _numbers(low: int, high: int, split: str) -> tuple[int, ...]:
    return tuple(n for n in range(low, high + 1) if belongs(str(n), split))


@lru_cache
def _names(split: str) -> tuple[str, ...]:
    names = (a + b + c for a in _STARTS for b in _MIDDLES for c in _ENDS)
    return tuple(name for name in names if belongs(name, split))


@lru_cache
def _goods(split: str) -> tuple[str, ...]:
    return tuple(good for good in _GOODS if belongs(good, split))


@lru_cache
def _codes(prefix: str, split: str) -> tuple[str, ...]:
    codes = (f"{prefix}-{number}" for number in _numbers(100, 999, split))
    return tuple(code for code in codes if belongs(code, split))

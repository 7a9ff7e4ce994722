"""Invented names, words and numbers of generated tool tasks, disjoint between the splits.

A hash of each name, word or number decides whether it belongs to `eval` or to the other splits.
Tasks draw everything that varies from `World`, so that no name, no number and no answer of a
training task occurs in a task of `eval`.
"""

import hashlib
from collections.abc import Sequence

from mlrl_envs.datasets.draws import Draws

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


def belongs(value: str, split: str) -> bool:
    """Return whether a name, a word or a number may be used in the tasks of a split."""
    is_eval = hashlib.sha256(value.encode()).digest()[0] % EVAL_SHARE == 0
    return is_eval == (split == "eval")


class World:
    """The source of everything that varies between tasks.

    Args:
        key: The seed; equal keys give equal values.
        split: The split that all values belong to.
    """

    def __init__(self, key: str, split: str) -> None:
        self.draws = Draws(key)
        self._split = split
        self._used: set[str] = set()

    def number(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high` that belongs to the split."""
        while True:
            value = self.draws.integer(low, high)
            if belongs(str(value), self._split):
                return value

    def half(self, low: int, high: int) -> float:
        """Return a number that ends in .5 and belongs to the split."""
        return self.number(low, high) + 0.5

    def name(self) -> str:
        """Return an invented name that the task has not used yet."""
        while True:
            parts = (self.draws.pick(pool) for pool in (_STARTS, _MIDDLES, _ENDS))
            if self._is_new(name := "".join(parts)):
                return name

    def person(self) -> str:
        """Return an invented full name."""
        return f"{self.name()} {self.name()}"

    def good(self) -> str:
        """Return a sort of goods that the task has not used yet."""
        while not self._is_new(good := self.draws.pick(_GOODS)):
            pass
        return good

    def code(self, prefix: str) -> str:
        """Return a code such as KX-311 that the task has not used yet."""
        while not self._is_new(code := f"{prefix}-{self.number(100, 999)}"):
            pass
        return code

    def shuffled(self, items: Sequence[str]) -> list[str]:
        """Return the items in another order."""
        left = list(items)
        return [left.pop(self.draws.integer(0, len(left) - 1)) for _ in items]

    def _is_new(self, value: str) -> bool:
        if value in self._used or not belongs(value, self._split):
            return False
        self._used.add(value)
        return True

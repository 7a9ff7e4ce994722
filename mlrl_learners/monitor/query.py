"""Filters and order of a list of episodes, parsed from an address."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["ORDERS", "SOURCES", "Order", "Query", "Source", "number_or_none"]

Source: TypeAlias = Literal["training", "evaluation"]
Order: TypeAlias = Literal["newest", "oldest", "best", "worst"]
SOURCES: tuple[Source, ...] = get_args(Source)
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Query:
    """Filters and order of a list of episodes.

    Attributes:
        source: Episodes of training or of evaluations.
        text: Text that an agent must have written, regardless of case.
        task: Part of the task's id.
        solved: `yes` if a path ended solved, `no` if none did; empty for both.
        low: Minimum mean return.
        high: Maximum mean return.
        first: First iteration.
        last: Last iteration.
        order: By iteration or by mean return.
    """

    source: Source = "training"
    text: str = ""
    task: str = ""
    solved: Literal["", "yes", "no"] = ""
    low: float | None = None
    high: float | None = None
    first: int | None = None
    last: int | None = None
    order: Order = "newest"

    @classmethod
    def parse(cls, words: Mapping[str, str]) -> "Query":
        """Parse a query; invalid values are ignored."""
        return cls(
            source="evaluation" if words.get("source") == "evaluation" else "training",
            text=words.get("text", ""),
            task=words.get("task", "").strip(),
            solved={"yes": "yes", "no": "no"}.get(words.get("solved", ""), ""),  # type: ignore[arg-type]
            low=number_or_none(words.get("low", "")),
            high=number_or_none(words.get("high", "")),
            first=_whole(words.get("first", "")),
            last=_whole(words.get("last", "")),
            order=next((order for order in ORDERS if order == words.get("order")), "newest"),
        )

    def words(self) -> dict[str, str]:
        """Return the values that differ from the defaults, as `parse` accepts them."""
        plain = Query()
        return {
            item.name: str(value)
            for item in fields(self)
            if (value := getattr(self, item.name)) != getattr(plain, item.name)
        }

    @property
    def is_plain(self) -> bool:
        """Whether the query has no filter."""
        return not self.words().keys() - {"source", "order"}

    def ordered(self, numbers: NDArray[np.int64], mean: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return ascending numbers of episodes in order; `mean` has the return of each episode."""
        if self.order == "newest":
            return numbers[::-1]
        if self.order == "oldest":
            return numbers
        by_return = np.argsort(mean[numbers], kind="stable")
        return numbers[by_return if self.order == "worst" else by_return[::-1]]


def number_or_none(text: str) -> float | None:
    """Parse a finite number; anything else is None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(text: str) -> int | None:
    value = number_or_none(text)
    return None if value is None or abs(value) > 2**31 - 1 else int(value)

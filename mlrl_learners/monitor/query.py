"""What a reader of transcripts asks for, read from the address of the page."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

__all__ = ["ORDERS", "SOURCES", "Order", "Query", "Source"]

Source: TypeAlias = Literal["training", "evaluation"]
Order: TypeAlias = Literal["newest", "oldest", "best", "worst"]
SOURCES: tuple[Source, ...] = get_args(Source)
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Query:
    """Which episodes are wanted, and in what order.

    Attributes:
        source: Of training, or of evaluations.
        text: What an agent must have written, whatever the case of its letters.
        task: A part of the task's id.
        solved: `yes` where a line ended solved, `no` where none did; empty for both.
        low: Least mean return.
        high: Greatest mean return.
        first: First iteration.
        last: Last iteration.
        order: By iteration, or by mean return.
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
        """Read a query; what makes no sense is as if it had not been asked for."""
        return cls(
            source="evaluation" if words.get("source") == "evaluation" else "training",
            text=words.get("text", ""),
            task=words.get("task", "").strip(),
            solved={"yes": "yes", "no": "no"}.get(words.get("solved", ""), ""),  # type: ignore[arg-type]
            low=_number(words.get("low", "")),
            high=_number(words.get("high", "")),
            first=_whole(words.get("first", "")),
            last=_whole(words.get("last", "")),
            order=next((order for order in ORDERS if order == words.get("order")), "newest"),
        )

    def words(self) -> dict[str, str]:
        """Return what differs from the plain query, as `parse` reads it."""
        plain = Query()
        return {
            item.name: str(value)
            for item in fields(self)
            if (value := getattr(self, item.name)) != getattr(plain, item.name)
        }

    @property
    def is_plain(self) -> bool:
        """Whether nothing is filtered out."""
        return not self.words().keys() - {"source", "order"}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(text: str) -> int | None:
    value = _number(text)
    return None if value is None or abs(value) > 2**31 - 1 else int(value)

"""Strict stand-ins for a candidate's objects, on the judge's side of the border.

A `Remote` forwards calls, attributes and `isinstance`, nothing else. `==`, `in`, `len`, `bool`
and iteration are never forwarded: each would let the candidate answer the test, or show it what
the test expects. Iterators alone hand out their items, one by one, as plain values.
"""

# ruff: noqa: ANN401  values of any type cross the border

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

__all__ = ["Border", "Remote", "RemoteIterator", "handle_of", "kind_with"]

# Attributes with two underscores that tests read; no other such name is ever asked for.
OPEN_DUNDERS = frozenset({"__name__", "__qualname__", "__doc__", "__dict__", "__annotations__"})
_read = object.__getattribute__


class Border(Protocol):
    """What a stand-in asks its questions of."""

    def request(self, operation: str, target: int, values: list[Any], extra: object) -> Any:
        """Ask the candidate for one thing and return the value, or raise what it raised."""

    def is_made(self, maker: int, thing: Any) -> None:
        """Hear that calling `maker` returned `thing`."""

    def lose(self, why: str) -> NoReturn:
        """Give the candidate up."""


def handle_of(remote: "Remote") -> int:
    """Return the number by which the candidate knows an object."""
    number: int = _read(remote, "_mlrl_handle")
    return number


class Remote:
    """A stand-in for one of the candidate's objects."""

    __slots__ = ("__weakref__", "_mlrl_border", "_mlrl_handle", "_mlrl_label")

    def __init__(self, border: Border, handle: int, label: str) -> None:
        object.__setattr__(self, "_mlrl_border", border)
        object.__setattr__(self, "_mlrl_handle", handle)
        object.__setattr__(self, "_mlrl_label", label)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's object."""
        result = _ask(self, "call", [*args, *kwargs.values()], list(kwargs))
        _read(self, "_mlrl_border").is_made(_read(self, "_mlrl_handle"), result)
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in OPEN_DUNDERS:
            raise AttributeError(name)
        return _ask(self, "get", [], name)

    def __setattr__(self, name: str, value: object) -> None:
        _ask(self, "set", [value], name)

    def __delattr__(self, name: str) -> None:
        _ask(self, "del", [], name)

    def __instancecheck__(self, instance: object) -> bool:
        return (
            issubclass(type(instance), Remote)
            and _ask(self, "isinstance", [instance], None) is True
        )

    def __repr__(self) -> str:
        return f"<{object.__getattribute__(self, '_mlrl_label')}>"


class RemoteIterator(Remote):
    """A stand-in for an iterator, the one kind of object whose items cross one by one."""

    __slots__ = ()

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        return _ask(self, "next", [], None)

    def __contains__(self, _item: object) -> bool:
        raise TypeError("membership is not asked of a candidate's object")


def kind_with(dunders: Sequence[str]) -> type[Remote]:
    """Return the stand-in for instances that tests make, with the operators they use on them."""
    members: dict[str, Any] = {name: _operator(name) for name in dunders}
    members.setdefault("__contains__", RemoteIterator.__contains__)
    return type("Remote", (Remote,), {"__slots__": (), **members}) if dunders else Remote


def _operator(name: str) -> Callable[..., Any]:
    """Return a method that forwards one operator, but no comparison with a plain value.

    The other side of such a comparison is what the test expects.
    """

    def forward(self: Remote, *args: Any) -> Any:
        if name in COMPARISONS and not issubclass(type(args[0]), Remote):
            return NotImplemented
        return _ask(self, "operator", list(args), name)

    return forward


COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


def _ask(remote: Remote, operation: str, values: list[Any], extra: object) -> Any:
    border: Border = _read(remote, "_mlrl_border")
    try:
        return border.request(operation, _read(remote, "_mlrl_handle"), values, extra)
    except StopIteration:
        if operation == "next":
            raise
        border.lose("protocol_violation")

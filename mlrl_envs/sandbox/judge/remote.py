"""Proxy objects that represent a candidate's objects in the judge.

A `Remote` forwards calls, attribute access and `isinstance` to the candidate, and nothing else.
`==`, `in`, `len`, `bool` and iteration are not forwarded: each would let the candidate decide the
result of a test, or show it the expected value. Two exceptions: iterators return their items one
by one, as decoded values; and instances that a test created have the operators that
`remote_class` was given.
"""

# ruff: noqa: ANN401  values of any type cross the border

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Remote", "RemoteIterator", "handle_of", "remote_class"]

# Special attributes that tests read; no other name with two leading underscores is requested.
OPEN_DUNDERS = frozenset({"__name__", "__qualname__", "__doc__", "__dict__", "__annotations__"})
_read = object.__getattribute__


def handle_of(remote: "Remote") -> int:
    """Return the number that identifies an object in the candidate."""
    number: int = _read(remote, "_mlrl_handle")
    return number


class CandidateConnection(Protocol):
    """Operations of the judge's connection to the candidate that proxies use; see `Border`."""

    def request(self, operation: str, handle: int, values: list[Any], extra: object) -> Any:
        """Let the candidate perform an operation on one of its objects."""

    def allow_operators(self, handle: int, instance: object) -> None:
        """Allow operators on an instance that a test has created."""

    def lose(self, status: str) -> Any:
        """End the run because the candidate broke the protocol."""


class Remote:
    """Proxy for one of the candidate's objects.

    Args:
        border: Connection to the candidate.
        handle: Number that identifies the object in the candidate.
        label: Name to show in `repr`.
    """

    __slots__ = ("__weakref__", "_mlrl_border", "_mlrl_handle", "_mlrl_label")

    def __init__(self, border: CandidateConnection, handle: int, label: str) -> None:
        object.__setattr__(self, "_mlrl_border", border)
        object.__setattr__(self, "_mlrl_handle", handle)
        object.__setattr__(self, "_mlrl_label", label)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the candidate's object."""
        result = _ask(self, "call", [*args, *kwargs.values()], list(kwargs))
        _read(self, "_mlrl_border").allow_operators(_read(self, "_mlrl_handle"), result)
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
    """Proxy for an iterator, the only kind of object whose items are requested one by one."""

    __slots__ = ()

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        return _ask(self, "next", [], None)

    def __contains__(self, _item: object) -> bool:
        raise TypeError("membership is not asked of a candidate's object")


def remote_class(dunders: Sequence[str]) -> type[Remote]:
    """Return the proxy class for instances that tests create, with these operators."""
    members: dict[str, Any] = {name: _operator(name) for name in dunders}
    members.setdefault("__contains__", RemoteIterator.__contains__)
    return type("Remote", (Remote,), {"__slots__": (), **members}) if dunders else Remote


def _operator(name: str) -> Callable[..., Any]:
    """Return a method that forwards one operator.

    Comparisons are forwarded only if the other operand is a proxy, too. Any other operand may be
    the value that the test expects, which the candidate must not see.
    """

    def forward(self: Remote, *args: Any) -> Any:
        if name in COMPARISONS and not issubclass(type(args[0]), Remote):
            return NotImplemented
        return _ask(self, "operator", list(args), name)

    return forward


COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


def _ask(remote: Remote, operation: str, values: list[Any], extra: object) -> Any:
    border: CandidateConnection = _read(remote, "_mlrl_border")
    try:
        return border.request(operation, _read(remote, "_mlrl_handle"), values, extra)
    except StopIteration:
        if operation == "next":
            raise
        border.lose("protocol_violation")

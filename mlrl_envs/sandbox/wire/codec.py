"""Encoding of Python values as JSON with a closed set of tags, between judge and candidate.

Scalars and lists are encoded as themselves; every other value is a JSON object with one key, its
tag. There is no pickle and no lookup of names, so decoding cannot run code of the sender.
Instances of subclasses of builtins are encoded as the builtin. A value without a tag becomes an
opaque handle, which the user of the codec assigns.

Mutable containers are mirrored: both sides number the containers in the order in which they are
sent, keep them, and send their changed contents with the next message. Thus arguments mutated in
place, results that are identical to an argument, aliases, cycles and attributes that are
containers behave as in one process.

Not covered: beyond `MAX_MIRRORS` the oldest containers are no longer mirrored and behave as
copies.
"""

# ruff: noqa: ANN401  values of any type cross the border

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from mlrl_envs.sandbox.wire import tags

__all__ = ["MAX_DEPTH", "Codec", "Wire", "WireError"]

MAX_DEPTH = 150
MAX_MIRRORS = 256
MAX_JSON_INT = 1 << 63  # larger integers are sent as hexadecimal text
SCALARS = frozenset({str, float, bool, int, type(None)})
AS_IS = frozenset({str, float, bool, type(None)})
Wire: TypeAlias = Any  # any JSON value; code below must not assume more
Payload: TypeAlias = Any


class WireError(Exception):
    """A value cannot be encoded, or a received value is malformed."""


class Codec:
    """Encoder and decoder of one side, with its table of mirrored containers.

    Args:
        export: Returns the tagged form of an object whose type has no tag.
        resolve: Returns the object for an opaque tag and its payload.
    """

    def __init__(
        self, export: Callable[[Any], Wire], resolve: Callable[[str, Payload], Any]
    ) -> None:
        self._export = export
        self._resolve = resolve
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._states: dict[int, Any] = {}
        self._fresh: list[int] = []
        self._next = 0

    # Messages. Every message carries changes of containers first, then values.

    def pack(self, values: Iterable[Any]) -> tuple[list[Wire], list[Wire]]:
        """Return the changes since the last message, and the encoded values.

        Raises:
            WireError: If a value is nested too deeply; the table is then unchanged.
        """
        mark = self._next
        try:
            changes = self._changes()
            packed = [self.encode(value) for value in values]
        except (WireError, RecursionError) as error:
            self._roll_back(mark)
            raise WireError(str(error)) from None
        self._settle()
        return changes, packed

    def unpack(self, changes: Wire, values: Wire) -> list[Any]:
        """Apply the changes of the other side and return the decoded values.

        Raises:
            WireError: If the message is malformed.
        """
        try:
            for number, raw in changes:
                tags.refill(self._objects[number], raw, self.decode)
            decoded = [self.decode(value) for value in values]
        except WireError:
            raise
        except Exception as error:  # noqa: BLE001  the sender is not trusted
            raise WireError(f"{type(error).__name__} in a value") from None
        self._settle([number for number, _raw in changes])
        return decoded

    def sweep(self) -> list[int]:
        """Stop mirroring containers that only this table refers to, and return their numbers."""
        dead = []
        for number in list(self._objects):
            if sys.getrefcount(self._objects[number]) <= UNSHARED:
                self.forget([number])
                dead.append(number)
        if len(self._objects) > MAX_MIRRORS:
            surplus = list(self._objects)[: len(self._objects) - MAX_MIRRORS]
            self.forget(surplus)
            dead += surplus
        return dead

    def forget(self, numbers: Iterable[int]) -> None:
        """Stop mirroring these containers."""
        for number in numbers:
            if number in self._objects:
                self._numbers.pop(id(self._objects[number]), None)
                self._states.pop(number, None)
                del self._objects[number]

    def encode(self, value: Any, depth: int = 0) -> Wire:
        """Return the JSON form of a value.

        Raises:
            WireError: If it is nested deeper than `MAX_DEPTH`.
        """
        kind = type(value)
        if kind in AS_IS:
            return value
        if kind is int:
            return value if -MAX_JSON_INT < value < MAX_JSON_INT else {"i": hex(value)}
        if depth > MAX_DEPTH:
            raise WireError(f"a value nested deeper than {MAX_DEPTH}")
        if kind is list:
            return self._encode_list(value, depth)
        known = self._numbers.get(id(value))
        if known is not None:
            return {"m": known}
        return self._encode_tagged(value, kind, depth)

    def _encode_list(self, value: list[Any], depth: int) -> Wire:
        known = self._numbers.get(id(value))
        if known is not None:
            return {"m": known}
        self._register(value)
        kinds = set(map(type, value))
        if kinds <= AS_IS:
            return list(value)
        if kinds == {int} and min(value) > -MAX_JSON_INT and max(value) < MAX_JSON_INT:
            return list(value)
        return [self.encode(item, depth + 1) for item in value]

    def _encode_tagged(self, value: Any, kind: type, depth: int) -> Wire:
        encoder = tags.encoder_of(kind)
        if encoder is None:
            return self._export(value)
        tag, mutable, write = encoder
        if mutable:
            self._register(value)
        return {tag: write(value, lambda item: self.encode(item, depth + 1))}

    def decode(self, raw: Wire, depth: int = 0) -> Any:
        """Return the value of a JSON form; a container is created before its items are decoded."""
        kind = type(raw)
        if kind is list:
            self._register(raw)
            if not SCALARS.issuperset(map(type, raw)):
                self._check(depth)
                raw[:] = [self.decode(item, depth + 1) for item in raw]
            return raw
        if kind is not dict:
            return raw
        self._check(depth)
        ((tag, payload),) = raw.items()
        if tag == "m":
            return self._objects[payload]
        reader = tags.READERS.get(tag)
        if reader is None:
            return self._resolve(tag, payload)
        return reader(payload, lambda item: self.decode(item, depth + 1), self._register)

    # The table of mirrored containers.

    def _check(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise WireError(f"a value nested deeper than {MAX_DEPTH}")

    def _register(self, container: Any) -> None:
        number = self._next
        self._next += 1
        self._objects[number] = container
        self._numbers[id(container)] = number
        self._fresh.append(number)

    def _settle(self, changed: Iterable[int] = ()) -> None:
        for number in (*self._fresh, *changed):
            self._states[number] = tags.shallow_state(self._objects[number])
        self._fresh.clear()

    def _roll_back(self, mark: int) -> None:
        self.forget([number for number in self._objects if number >= mark])
        self._next = mark
        self._fresh.clear()

    def _changes(self) -> list[Wire]:
        changed = []
        for number, state in list(self._states.items()):
            container = self._objects[number]
            if tags.differs(container, state):
                changed.append([number, tags.contents(container, self.encode)])
                self._states[number] = tags.shallow_state(container)
        return changed


def _unshared_references() -> int:
    """Return `sys.getrefcount` of an object that only a dict refers to."""
    table = {0: [1]}
    count = 0
    for number in list(table):
        count = sys.getrefcount(table[number])
    return count


UNSHARED = _unshared_references()

"""Tags of the wire format: one writer and one reader for each supported builtin type.

A writer may receive an instance of a subclass whose methods the candidate has overridden, so it
calls the methods of the builtin base class. A reader builds instances of builtins only. Types of
`decimal`, `fractions` and `datetime` have writers only in processes that imported these modules,
because the imports take longer than most programs.
"""

# ruff: noqa: ANN401  values of any type cross the border

import builtins
import importlib
import operator
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

__all__ = [
    "EXCEPTIONS",
    "READERS",
    "TYPE_NAMES",
    "contents",
    "differs",
    "encoder_of",
    "exception_args",
    "exception_name",
    "refill",
    "shallow_state",
]

Encode: TypeAlias = Callable[[Any], Any]
Decode: TypeAlias = Callable[[Any], Any]
Register: TypeAlias = Callable[[Any], None]
Writer: TypeAlias = Callable[[Any, Encode], Any]
Reader: TypeAlias = Callable[[Any, Decode, Register], Any]

TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset),
        *(range, slice, object, type, type(None), Counter, OrderedDict, defaultdict, deque),
    )
}
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
# A candidate must not be able to leave a test or to end an iteration of the tests.
FORBIDDEN = {"SystemExit", "KeyboardInterrupt", "GeneratorExit", "StopIteration"}
FORBIDDEN |= {"StopAsyncIteration", "BaseException", "BaseExceptionGroup"}
EXCEPTIONS: dict[str, type[Exception]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and name not in FORBIDDEN
}
TYPES |= EXCEPTIONS
TYPE_NAMES |= {kind: name for name, kind in EXCEPTIONS.items()}


def exception_name(kind: type) -> str:
    """Return the name of the nearest builtin exception in a class's MRO, "" if it is forbidden."""
    for base in type.mro(kind):
        name = type.__getattribute__(base, "__name__")
        if name in FORBIDDEN and base.__module__ == "builtins":
            return ""
        if EXCEPTIONS.get(name) is base:
            return str(name)
    return ""


def exception_args(value: BaseException) -> tuple[Any, ...]:
    """Return the arguments of an exception, even if its class overrides `args`."""
    return tuple(BaseException.__dict__["args"].__get__(value))


def _pairs(items: Iterable[tuple[Any, Any]], encode: Encode) -> list[list[Any]]:
    return [[encode(key), encode(value)] for key, value in items]


def _each(items: Iterable[Any], encode: Encode) -> list[Any]:
    return [encode(item) for item in items]


def _write_dict(value: Any, encode: Encode) -> list[list[Any]]:
    return _pairs(dict.items(value), encode)


def _items_of(kind: Any) -> Writer:
    return lambda value, encode: _each(kind.__iter__(value), encode)


def _write_default(value: Any, encode: Encode) -> list[Any]:
    return [TYPE_NAMES.get(value.default_factory), _write_dict(value, encode)]


def _write_deque(value: Any, encode: Encode) -> list[Any]:
    return [deque.maxlen.__get__(value), _each(deque.__iter__(value), encode)]


def _write_exception(value: Any, encode: Encode) -> list[Any]:
    return [exception_name(type(value)), _each(exception_args(value), encode)]


def _write_span(value: Any, encode: Encode) -> list[Any]:
    return _each((value.start, value.stop, value.step), encode)


def _isoformat(value: Any, _encode: Encode) -> str:
    return str(value.isoformat())


# Tag, whether values are mirrored, and writer. Subclasses use the first base of their MRO in it.
TagRow: TypeAlias = tuple[str, bool, Writer]
WRITERS: dict[type, TagRow] = {
    tuple: ("t", False, _items_of(tuple)),
    dict: ("d", True, _write_dict),
    set: ("s", True, _items_of(set)),
    frozenset: ("f", False, _items_of(frozenset)),
    list: ("l", True, _items_of(list)),
    str: ("S", False, lambda value, _: str.__str__(value)),
    int: ("i", False, lambda value, _: hex(int.__int__(value))),
    float: ("R", False, lambda value, _: float.__float__(value)),
    bytes: ("b", False, lambda value, _: bytes.decode(value, "latin-1")),
    bytearray: ("B", True, lambda value, _: bytearray.decode(value, "latin-1")),
    complex: ("c", False, lambda value, _: [value.real, value.imag]),
    range: ("r", False, _write_span),
    slice: ("L", False, _write_span),
    deque: ("q", True, _write_deque),
    Counter: ("C", True, _write_dict),
    OrderedDict: ("O", True, _write_dict),
    defaultdict: ("D", True, _write_default),
    type({}.keys()): ("k", False, _each),
    type({}.values()): ("v", False, _each),
    type({}.items()): ("w", False, _pairs),
    type(Ellipsis): ("e", False, lambda _value, _: "Ellipsis"),
    type(NotImplemented): ("e", False, lambda _value, _: "NotImplemented"),
    BaseException: ("x", False, _write_exception),
}
LAZY: dict[tuple[str, str], TagRow] = {
    ("decimal", "Decimal"): ("n", False, lambda value, _: str(value)),
    ("fractions", "Fraction"): (
        "F",
        False,
        lambda value, _: [hex(value.numerator), hex(value.denominator)],
    ),
    ("datetime", "datetime"): ("dt", False, _isoformat),
    ("datetime", "date"): ("da", False, _isoformat),
    ("datetime", "time"): ("ti", False, _isoformat),
    ("datetime", "timedelta"): (
        "td",
        False,
        lambda value, _: [value.days, value.seconds, value.microseconds],
    ),
}
_rows: dict[type, TagRow | None] = {}


def encoder_of(kind: type) -> TagRow | None:
    """Return the row for a type or for the builtin that it derives from, None if there is none."""
    if kind not in _rows:
        _rows[kind] = _find_row(kind)
    return _rows[kind]


def _find_row(kind: type) -> TagRow | None:
    lazy = {
        getattr(sys.modules[module], name, None): row
        for (module, name), row in LAZY.items()
        if module in sys.modules
    }
    for base in type.mro(kind):
        row = WRITERS.get(base) or lazy.get(base)
        if row is not None:
            return row
    return None


def _build(kind: Callable[..., Any]) -> Reader:
    """Return a reader for an immutable collection."""
    return lambda payload, decode, _register: kind(_each(payload, decode))


def _mirror(empty: Callable[[Any], Any], select: Callable[[Any], Any]) -> Reader:
    """Return a reader for a mutable collection.

    The collection is created empty and registered first, so that its items may refer to it.
    """

    def read(payload: Any, decode: Decode, register: Register) -> Any:
        container = empty(payload)
        register(container)
        _extend(container, select(payload), decode)
        return container

    return read


def _extend(container: Any, raw: Any, decode: Decode) -> None:
    if isinstance(container, dict):
        for key, value in raw:
            container[decode(key)] = decode(value)
    elif isinstance(container, set):
        container.update(_each(raw, decode))
    elif isinstance(container, bytearray):
        container += raw.encode("latin-1")
    else:
        container.extend(_each(raw, decode))


def _lazy_reader(module: str, build: Callable[[Any, Any], Any]) -> Reader:
    return lambda payload, _decode, _register: build(importlib.import_module(module), payload)


def _whole(payload: Any) -> Any:
    return payload


def _second(payload: Any) -> Any:
    return payload[1]


def _read_exception(payload: Any, decode: Decode, _register: Register) -> Exception:
    name, arguments = payload
    return EXCEPTIONS.get(name, Exception)(*_each(arguments, decode))


READERS: dict[str, Reader] = {
    "t": _build(tuple),
    "f": _build(frozenset),
    "k": _build(lambda items: dict.fromkeys(items).keys()),
    "v": _build(lambda items: dict(enumerate(items)).values()),
    "w": lambda payload, decode, _: {decode(key): decode(value) for key, value in payload}.items(),
    "l": _mirror(lambda _: [], _whole),
    "d": _mirror(lambda _: {}, _whole),
    "s": _mirror(lambda _: set(), _whole),
    "C": _mirror(lambda _: Counter(), _whole),
    "O": _mirror(lambda _: OrderedDict(), _whole),
    "B": _mirror(lambda _: bytearray(), _whole),
    "q": _mirror(lambda payload: deque(maxlen=payload[0]), _second),
    "D": _mirror(lambda payload: defaultdict(TYPES.get(payload[0])), _second),
    "S": lambda payload, _decode, _register: str(payload),
    "R": lambda payload, _decode, _register: float(payload),
    "i": lambda payload, _decode, _register: int(payload, 16),
    "b": lambda payload, _decode, _register: payload.encode("latin-1"),
    "c": lambda payload, _decode, _register: complex(*payload),
    "r": lambda payload, decode, _register: range(*_each(payload, decode)),
    "L": lambda payload, decode, _register: slice(*_each(payload, decode)),
    "T": lambda payload, _decode, _register: TYPES[payload],
    "e": lambda payload, _decode, _register: {"Ellipsis": ...}.get(payload, NotImplemented),
    "x": _read_exception,
    "n": _lazy_reader("decimal", lambda module, text: module.Decimal(text)),
    "F": _lazy_reader(
        "fractions", lambda module, parts: module.Fraction(*(int(part, 16) for part in parts))
    ),
    "dt": _lazy_reader("datetime", lambda module, text: module.datetime.fromisoformat(text)),
    "da": _lazy_reader("datetime", lambda module, text: module.date.fromisoformat(text)),
    "ti": _lazy_reader("datetime", lambda module, text: module.time.fromisoformat(text)),
    "td": _lazy_reader("datetime", lambda module, parts: module.timedelta(*parts)),
}


def shallow_state(container: Any) -> tuple[Any, ...]:
    """Return the items of a container, which `differs` compares by identity."""
    if isinstance(container, dict):
        return (*dict.keys(container), *dict.values(container))
    if isinstance(container, bytearray):
        return (bytes(container),)
    return tuple(container)


def differs(container: Any, state: tuple[Any, ...]) -> bool:
    """Return whether a container holds other objects than those in `state`."""
    now = shallow_state(container)
    if isinstance(container, bytearray):
        return now != state
    return len(now) != len(state) or not all(map(operator.is_, now, state))


def contents(container: Any, encode: Encode) -> Any:
    """Return the contents of a container in wire form, for `refill` on the other side."""
    if isinstance(container, dict):
        return _pairs(dict.items(container), encode)
    if isinstance(container, bytearray):
        return bytes(container).decode("latin-1")
    return _each(tuple(container), encode)


def refill(container: Any, raw: Any, decode: Decode) -> None:
    """Replace the contents of a mirrored container by those sent from the other side.

    Raises:
        TypeError: If `raw` is not a list, or for a bytearray not a string.
    """
    if not isinstance(raw, str if isinstance(container, bytearray) else list):
        raise TypeError(f"unexpected contents of type {type(raw).__name__}")
    if isinstance(container, list):
        container[:] = _each(raw, decode)
        return
    container.clear()
    _extend(container, raw, decode)

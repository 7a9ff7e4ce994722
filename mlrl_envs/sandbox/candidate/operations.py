"""Operations on the candidate's objects that the judge may request.

Each operation takes the object, the decoded values and the extra value of the request, and returns
the kind, the values and the extra value of the reply (see `candidate/process.py`).
"""

# ruff: noqa: ANN401  values of any type cross the border

from collections.abc import Callable
from typing import Any

__all__ = ["OPERATIONS"]


def _call(target: Any, values: list[Any], names: list[str]) -> tuple[str, list[Any], Any]:
    if not names:
        return "value", [target(*values)], None
    split = len(values) - len(names)
    keywords = dict(zip(names, values[split:], strict=True))
    return "value", [target(*values[:split], **keywords)], None


def _get(target: Any, _values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    return "value", [getattr(target, name)], None


def _set(target: Any, values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    setattr(target, name, values[0])
    return "value", [None], None


def _delete(target: Any, _values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    delattr(target, name)
    return "value", [None], None


def _isinstance(target: Any, values: list[Any], _extra: Any) -> tuple[str, list[Any], Any]:
    return "value", [isinstance(values[0], target)], None


def _next(target: Any, _values: list[Any], _extra: Any) -> tuple[str, list[Any], Any]:
    try:
        return "value", [next(target)], None
    except StopIteration:
        return "stop", [], None


def _operator(target: Any, values: list[Any], name: str) -> tuple[str, list[Any], Any]:
    operate = BUILTIN_OPERATORS.get(name) or getattr(type(target), name)
    return "value", [operate(target, *values)], None


# Operators for which Python falls back on another method if a class does not define this one.
BUILTIN_OPERATORS: dict[str, Callable[..., Any]] = {
    "__contains__": lambda target, item: item in target,
    "__iter__": iter,
    "__str__": str,
    "__repr__": repr,
    "__bool__": bool,
}


OPERATIONS: dict[str, Callable[[Any, list[Any], Any], tuple[str, list[Any], Any]]] = {
    "call": _call,
    "get": _get,
    "set": _set,
    "del": _delete,
    "isinstance": _isinstance,
    "next": _next,
    "operator": _operator,
}

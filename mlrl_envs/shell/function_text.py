"""Texts of functions for fingerprints: equal in every process, and different if they do otherwise.

Covered: the source, defaults, values of enclosing functions, arguments of `functools.partial`, and
the attributes of objects that are called. Not covered: global variables and other functions that a
function uses.
"""

import functools
import inspect
import re
from typing import Any

__all__ = ["function_text"]

DEPTH = 4  # of functions in functions
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def function_text(value: Any, depth: int = DEPTH) -> str:  # noqa: ANN401  anything that is called
    """Return the text of a function, a class, or an object that can be called.

    Args:
        value: The function; other values are represented by `repr`, without addresses.
        depth: How many functions inside others are followed.
    """
    if not callable(value) or depth == 0:
        return _ADDRESS.sub("", repr(value))
    inner = functools.partial(function_text, depth=depth - 1)
    if isinstance(value, functools.partial):
        named = [f"{name}={inner(given)}" for name, given in sorted(value.keywords.items())]
        return f"partial({', '.join([inner(value.func), *map(inner, value.args), *named])})"
    if inspect.ismethod(value):
        return f"{inner(value.__func__)} of {inner(value.__self__)}"
    if inspect.isroutine(value) or isinstance(value, type):
        return "\n".join([_source(value), *map(inner, _bound(value))])
    attributes = [f"{name}={inner(each)}" for name, each in sorted(_attributes(value).items())]
    return "\n".join([_source(type(value)), *attributes])


def _attributes(value: object) -> dict[str, Any]:
    return dict(getattr(value, "__dict__", {}))


def _bound(value: Any) -> list[Any]:  # noqa: ANN401  a function or a class
    """Return the defaults of a function, and the values that it takes from enclosing ones."""
    found = [*(getattr(value, "__defaults__", None) or ())]
    found += [each for _, each in sorted((getattr(value, "__kwdefaults__", None) or {}).items())]
    for cell in getattr(value, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # assigned later
            continue
    return found


def _source(value: Any) -> str:  # noqa: ANN401  a function or a class
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        code = getattr(value, "__code__", None)
        return _ADDRESS.sub("", repr(value)) if code is None else _code(code)


def _code(code: Any) -> str:  # noqa: ANN401  a code object
    constants = [_code(each) if hasattr(each, "co_code") else repr(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"

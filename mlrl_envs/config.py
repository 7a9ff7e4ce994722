"""Checks of options, and the import of objects by name.

Options are frozen dataclasses; the families define theirs in `mlrl_envs.envs`.
"""

import importlib
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

from mlrl_envs.errors import InvalidArgumentError, unknown_name

__all__ = [
    "SHELL_OPTIONS",
    "build_config",
    "check_arguments",
    "check_choice",
    "check_int",
    "check_number",
    "checked_path",
    "checked_some",
    "import_object",
]

SHELL_OPTIONS = ("sandbox", "limits", "render_mode")
ConfigT = TypeVar("ConfigT")


def build_config(config_type: type[ConfigT], options: Mapping[str, Any]) -> ConfigT:
    """Build a configuration from keyword arguments.

    Args:
        config_type: A dataclass.
        options: Values of its fields, by name.

    Raises:
        UnknownNameError: If a keyword is not a field of `config_type`.
        InvalidArgumentError: If a value is outside its range.
    """
    known = [field.name for field in fields(config_type)]  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            raise unknown_name("option", name, [*known, *SHELL_OPTIONS])
    return config_type(**options)


def check_arguments(factory: Callable[..., object], options: Mapping[str, object]) -> None:
    """Check the names of options against the parameters of the function that takes them.

    Raises:
        InvalidArgumentError: If an option without a default is missing.
        UnknownNameError: If there is no such option; the message suggests the nearest name. A
            function with `**options` checks them itself.
    """
    parameters = inspect.signature(factory).parameters
    for name, each in parameters.items():
        by_name = each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if by_name and each.default is each.empty and name not in options:
            raise InvalidArgumentError(f"the environment needs the option {name!r}")
    if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        for name in options:
            if name not in parameters:
                raise unknown_name("option", name, parameters)


def check_choice(kind: str, value: object, choices: Sequence[str]) -> None:
    """Raise `UnknownNameError` unless `value` is one of `choices`.

    Args:
        kind: Name of the option, for the error message.
        value: The value to check.
        choices: The allowed values.
    """
    if value not in choices:
        raise unknown_name(kind, value, choices)


def check_number(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless `value` is a finite number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(cast("float", value)):
        raise InvalidArgumentError(f"{name} must be a finite number, got {value!r}")


def check_int(name: str, value: object, low: int, high: int) -> None:
    """Raise `InvalidArgumentError` unless `value` is an integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidArgumentError(f"{name} must be an int from {low} to {high}, got {value!r}")


def checked_some(name: str, chosen: object, known: Sequence[object]) -> tuple[object, ...]:
    """Return a list of some of the known values as a tuple.

    Raises:
        InvalidArgumentError: If `chosen` is not such a list, or is empty.
    """
    if not isinstance(chosen, list | tuple) or not chosen:
        raise InvalidArgumentError(f"{name} must be a list of some of {known}, got {chosen!r}")
    for value in chosen:
        if value not in known or isinstance(value, bool):
            raise InvalidArgumentError(f"{name} must be some of {known}, got {value!r}")
    return tuple(chosen)


def checked_path(name: str, value: object) -> str | None:
    """Return a path as a string, or None.

    Raises:
        InvalidArgumentError: If `value` is neither a path nor None.
    """
    if not isinstance(value, str | os.PathLike | None):
        raise InvalidArgumentError(f"{name} must be a path, got {value!r}")
    return None if value is None else os.fspath(value)


def import_object(reference: str) -> Any:  # noqa: ANN401  any object can be named
    """Import the object that `"module:name"` refers to.

    Raises:
        ImportError: If the module cannot be imported.
        AttributeError: If the module has no attribute of that name.
        ValueError: If the name of the module is empty.
    """
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)

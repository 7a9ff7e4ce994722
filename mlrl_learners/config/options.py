"""Option checks against the fields of a configuration dataclass."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mlrl_learners.errors import ConfigError, unknown_name

__all__ = ["accepts", "check_names", "check_options", "check_unread", "describe_type"]

_WORDS = {int: "an int", float: "a number", bool: "true or false", str: "text"}


def accepts(annotation: Any, value: object) -> bool:  # noqa: ANN401
    """Return whether a value has a type; elements of sequences are not checked.

    Names of mappings are text; a sequence of fixed length has this length.
    """
    origin = get_origin(annotation)
    if origin is Literal:
        return value in get_args(annotation)
    if origin in (Union, UnionType):
        return any(accepts(part, value) for part in get_args(annotation))
    if origin is not None and issubclass(origin, Mapping):
        key, inner = get_args(annotation)
        return isinstance(value, Mapping) and all(
            accepts(key, name) and accepts(inner, each) for name, each in value.items()
        )
    if origin is not None:
        parts = get_args(annotation)
        is_fixed = origin is tuple and Ellipsis not in parts
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and (not is_fixed or len(value) == len(parts))
        )
    if annotation in (int, float):
        numbers = (int, float) if annotation is float else (int,)
        return isinstance(value, numbers) and not isinstance(value, bool)
    return annotation is Any or not isinstance(annotation, type) or isinstance(value, annotation)


def check_options(options: Mapping[str, object], config_type: type) -> None:
    """Check names and types of options; the dataclass itself checks ranges.

    Args:
        options: Options as the caller passed them.
        config_type: A dataclass whose fields are the known options.

    Raises:
        UnknownNameError: Naming the first unknown option and the nearest known one.
        ConfigError: Naming the first option whose value has the wrong type.
    """
    check_names(options, [field.name for field in dataclasses.fields(config_type)])
    annotations = get_type_hints(config_type)
    for name, value in options.items():
        if not accepts(annotations[name], value):
            raise ConfigError(f"{name} must be {describe_type(annotations[name])}, got {value!r}")


def check_names(options: Collection[str], known: Collection[str]) -> None:
    """Check that every option is known.

    Raises:
        UnknownNameError: Naming the first unknown option and the nearest known one.
    """
    for option in options:
        if option not in known:
            raise unknown_name("option", option, known)


def check_unread(
    config: object,
    names: Sequence[str],
    reason: str,
    prefix: str = "",
    defaults: object = None,
) -> None:
    """Check that options without effect have their default values.

    Args:
        config: A dataclass instance.
        names: Fields that have no effect.
        reason: End of the error message: the option that disables them, and the fix.
        prefix: Start of the names in the error message.
        defaults: Instance with the default values; None for those of the dataclass.

    Raises:
        ConfigError: Naming the first of the fields that differs from its default.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    for name in names:
        factory, value = fields[name].default_factory, getattr(config, name)
        default = fields[name].default if factory is dataclasses.MISSING else factory()
        default = default if defaults is None else getattr(defaults, name)
        if value != default:
            raise ConfigError(f"{prefix}{name} {value} means nothing with {reason}")


def describe_type(annotation: Any) -> str:  # noqa: ANN401 - type forms have no common type
    """Return a description of a type for error messages."""
    if annotation is type(None):
        return "null"
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(map(str, get_args(annotation)))
    if origin in (Union, UnionType):
        return " or ".join(map(describe_type, get_args(annotation)))
    if isinstance(origin, type):
        return _mapping_type(annotation) if issubclass(origin, Mapping) else "a list"
    return _WORDS.get(annotation) or str(getattr(annotation, "__name__", annotation))


def _mapping_type(annotation: Any) -> str:  # noqa: ANN401
    """Return a description of a mapping, with the type of numbers in it."""
    inner = get_args(annotation)[1]
    return f"a mapping of names to {inner.__name__}s" if inner in (int, float) else "a mapping"

"""Groups of options: building a configuration from nested mappings, and its description.

A configuration is a frozen dataclass whose fields are groups, and each group is a frozen dataclass
that answers one question, with at most ten options. Learners, `mlrl list NAME` and the reference
pages read the same dataclasses and docstrings.
"""

import dataclasses
import difflib
import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, get_type_hints

from mlrl_learners.config.option_places import ACCEPTED, merge_options, place_of
from mlrl_learners.config.options import accepts, describe_type
from mlrl_learners.errors import ConfigError, UnknownNameError

__all__ = [
    "MAX_FIELDS",
    "Option",
    "OptionGroup",
    "build_config",
    "check_known",
    "described",
    "described_signature",
    "field_docs",
    "option_groups",
    "summary_of",
]

MAX_FIELDS = 10
ConfigT = TypeVar("ConfigT")


class Option(NamedTuple):
    """An option of a learner.

    Attributes:
        name: Name of the field in its group.
        type: Description of the type of its value.
        default: Default value of the learner.
        meaning: Description.
    """

    name: str
    type: str
    default: object
    meaning: str


class OptionGroup(NamedTuple):
    """Options that answer one question.

    Attributes:
        name: Name of the group; empty for options outside groups.
        summary: The question, as the first line of the docstring of the group.
        options: Options of the group.
    """

    name: str
    summary: str
    options: tuple[Option, ...]


def build_config(config_type: type[ConfigT], options: Mapping[str, Any]) -> ConfigT:
    """Build a configuration from options.

    Args:
        config_type: A dataclass whose fields are groups, or plain options.
        options: Groups by name, as mappings of some of their fields or as instances, and plain
            options; `group_size` is `group.size`.

    Raises:
        UnknownNameError: Naming the first unknown option and the nearest `group.field`.
        ConfigError: If an option has an old flat name, the wrong type, or a value outside its
            range.
    """
    defaults = _defaults(config_type)
    groups = {name: value for name, value in defaults.items() if dataclasses.is_dataclass(value)}
    types = get_type_hints(config_type)
    values: dict[str, Any] = {}
    for name, given in _with_accepted(options, groups).items():
        _check_place(name, given, defaults, groups)
        if name in groups:
            values[name] = _build_group(name, given, groups)
        else:
            _check_type(name, given, types[name])
            values[name] = given
    return config_type(**values)


def check_known(options: Mapping[str, Any], *config_types: type) -> None:
    """Check that options are groups, plain options or old names of one of some configurations.

    Raises:
        UnknownNameError: Naming the first unknown option and the nearest `group.field` of all.
    """
    defaults: dict[str, Any] = {}
    for each in config_types:
        defaults |= _defaults(each)
    groups = {name: value for name, value in defaults.items() if dataclasses.is_dataclass(value)}
    for name in options:
        group = (place_of(name, groups) or "").partition(".")[0]
        if name not in defaults and group not in groups:
            raise _unknown_option(name, defaults, groups)


def option_groups(config: object) -> Iterator[OptionGroup]:
    """Yield the groups of a configuration; its plain options are a group without a name.

    Args:
        config: Configuration whose values are shown as defaults.
    """
    fields = dataclasses.fields(config)  # type: ignore[arg-type]
    values = {field.name: getattr(config, field.name) for field in fields}
    plain = {name: each for name, each in values.items() if not dataclasses.is_dataclass(each)}
    if plain:
        yield OptionGroup("", summary_of(type(config)), _options(type(config), plain))
    for name, group in values.items():
        if name not in plain:
            yield OptionGroup(name, summary_of(type(group)), _options(type(group), vars(group)))


def described(kind: type, name: str = "") -> OptionGroup:
    """Return the fields of a dataclass with their defaults as a group."""
    return OptionGroup(name, summary_of(kind), _options(kind, _defaults(kind)))


def described_signature(function: Any, skipped: Collection[str] = ()) -> OptionGroup:  # noqa: ANN401
    """Return the parameters of a function or class, with the meanings of its `Args:` section.

    Args:
        function: A function or class; its summary is that of its docstring.
        skipped: Names of parameters that are no options.
    """
    text = inspect.getdoc(function) or ""
    _, _, rest = text.partition("Args:\n")
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", rest, re.MULTILINE)
    meanings = {name: " ".join(meaning.split()) for name, meaning in found}
    options = [
        Option(
            each.name,
            "",
            "required" if each.default is each.empty else each.default,
            meanings.get(each.name, ""),
        )
        for each in inspect.signature(function).parameters.values()
        if each.name not in skipped
    ]
    return OptionGroup("", text.split("\n", 1)[0], tuple(options))


def field_docs(kind: type) -> dict[str, str]:
    """Return the descriptions of fields, from the `Attributes:` sections of a class and its bases.

    Args:
        kind: A dataclass.
    """
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        _, _, attributes = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")
        for name, meaning in re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE):
            docs[name] = " ".join(meaning.split())
    return docs


def summary_of(kind: type) -> str:
    """Return the first line of the docstring of a class."""
    return inspect.cleandoc(kind.__doc__ or "").split("\n", 1)[0]


def _options(kind: type, values: Mapping[str, Any]) -> tuple[Option, ...]:
    docs, types = field_docs(kind), get_type_hints(kind)
    return tuple(
        Option(name, describe_type(types[name]), value, docs.get(name, ""))
        for name, value in values.items()
    )


def _defaults(config_type: type) -> dict[str, Any]:
    return {
        field.name: field.default
        if field.default_factory is dataclasses.MISSING
        else field.default_factory()
        for field in dataclasses.fields(config_type)
        if (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
    }


def _with_accepted(options: Mapping[str, Any], groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with accepted flat names moved to their groups."""
    given = {name: value for name, value in options.items() if name not in ACCEPTED}
    for name in (each for each in options if each in ACCEPTED):
        place = place_of(name, groups) or ""
        group, _, field = place.partition(".")
        own = given.get(group, {})
        if group not in groups:
            given[name] = options[name]
        elif not isinstance(own, Mapping) or field in own:
            raise ConfigError(f"{name} is {place}: leave one of them out")
        else:
            given = merge_options(given, {group: {field: options[name]}})
    return given


def _check_place(
    name: str, given: object, defaults: Mapping[str, Any], groups: Mapping[str, Any]
) -> None:
    """Check that an option is a group or a plain option, and not an old name."""
    if isinstance(given, Mapping | type(groups.get(name))) and name in groups:
        return
    place = place_of(name, groups)
    group, _, field = (place or "").partition(".")
    if group in groups and hasattr(groups[group], field):
        raise ConfigError(
            f"{name} is now {place}: write {group}: {{{field}: ...}}, or --learner.{place} ..."
        )
    if name in groups:
        fields = ", ".join(vars(groups[name]))
        raise ConfigError(f"{name} must be a mapping of some of {fields}, got {given!r}")
    if name not in defaults:
        raise _unknown_option(name, defaults, groups)


def _build_group(name: str, given: Any, groups: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of the groups, or a mapping
    group = groups[name]
    types = get_type_hints(type(group))
    is_instance = isinstance(given, type(group))
    for field, value in (vars(given) if is_instance else given).items():
        if field not in vars(group):
            raise _unknown_option(f"{name}.{field}", {}, groups)
        _check_type(f"{name}.{field}", value, types[field])
    if is_instance:
        return given
    try:
        return dataclasses.replace(group, **given)
    except ConfigError as error:
        message = str(error)
        is_named = message.split(" ", 1)[0] in vars(group)
        raise ConfigError(f"{name}.{message}" if is_named else message) from None


def _check_type(name: str, value: object, annotation: Any) -> None:  # noqa: ANN401
    if not accepts(annotation, value):
        raise ConfigError(f"{name} must be {describe_type(annotation)}, got {value!r}")


def _unknown_option(
    name: str, defaults: Mapping[str, Any], groups: Mapping[str, Any]
) -> UnknownNameError:
    """Build the error for an unknown option; its message suggests the nearest `group.field`."""
    dotted = [f"{group}.{field}" for group, value in groups.items() for field in vars(value)]
    plain = [each for each in defaults if each not in groups]
    spellings = {each.rpartition(".")[2]: each for each in dotted}
    spellings |= {each.replace(".", "_"): each for each in dotted}
    spellings |= {each: each for each in (*dotted, *plain)}
    field = name.rpartition(".")[2]
    nearest = [field] if field in spellings else difflib.get_close_matches(name, spellings, 1, 0.5)
    hint = f"did you mean {spellings[nearest[0]]!r}?" if nearest else f"known: {', '.join(dotted)}"
    return UnknownNameError(f"unknown option {name!r}; {hint}")

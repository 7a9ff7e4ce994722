"""Options of own rewards and prompts: functions, weights, processors and templates, checked."""

import hashlib
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mlrl_envs.config import check_number
from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.references import import_reference, is_reference
from mlrl_envs.shell.function_text import function_text
from mlrl_envs.shell.processors import Chain, as_chain
from mlrl_envs.types import AgentID

__all__ = ["CUSTOM_OPTIONS", "Formatter", "Reward", "Rules", "rules_of", "take_custom"]

CUSTOM_OPTIONS = ("reward_weights", "reward_processors", "reward_range", "formatters")
"""Options of every environment besides `reward`, which may be a function."""

ANY_RANGE = (-1e6, 1e6)
_FIELDS = ("task", "agent")

Reward = Callable[[Any, Mapping[AgentID, str]], Any]
Formatter = str | Callable[[str, AgentID], str]


@dataclass(frozen=True)
class Rules:
    """What is changed in an environment.

    Attributes:
        functions: Name and function of each own reward.
        weights: Weights of the components by name, own rewards included; 1 without one.
        kept: Components of the environment that count; None for all.
        chain: Processors of the reward of each turn.
        bounds: Lowest and highest reward before the processors; None for those of the environment.
        formatters: Template or function of what an agent reads.
    """

    functions: tuple[tuple[str, Reward], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    kept: tuple[str, ...] | None = None
    chain: Chain = ()
    bounds: tuple[float, float] | None = None
    formatters: tuple[tuple[AgentID, Formatter], ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of everything, with the source of functions."""
        text = repr([_told(getattr(self, field.name)) for field in fields(self)])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def take_custom(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of own rewards and prompts from `options`, and return them."""
    taken = {name: options.pop(name) for name in CUSTOM_OPTIONS if name in options}
    reward = options.get("reward")
    is_own = callable(reward) or isinstance(reward, list | tuple)
    if is_own or (isinstance(reward, str) and ":" in reward):
        taken["reward"] = options.pop("reward")
    return taken


def rules_of(options: Mapping[str, Any], agents: Sequence[AgentID]) -> Rules:
    """Return what the options of `mlrl_envs.shell.custom.customized` change.

    Raises:
        UnknownNameError: If there is no such agent, processor or field.
        InvalidArgumentError: If a value has the wrong type, or a function cannot be imported.
    """
    weights = _mapping("reward_weights", options.get("reward_weights") or {})
    for name, weight in weights.items():
        check_number(f"the weight of {name}", weight)
    kept, given = _parts(options["reward"]) if "reward" in options else (None, [])
    functions = [_function("reward", each) for each in (*given, *(w for w in weights if ":" in w))]
    names = [getattr(each, "__name__", "reward") for each in functions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidArgumentError(f"two rewards are named {twice!r}: rename one of the functions")
    named = {name.rpartition(":")[2]: float(weight) for name, weight in weights.items()}
    bounds = options.get("reward_range") or (ANY_RANGE if functions or weights else None)
    return Rules(
        functions=tuple(zip(names, functions, strict=True)),
        weights=tuple(named.items()),
        kept=kept,
        chain=as_chain(options.get("reward_processors") or ()),
        bounds=None if bounds is None else _bounds(bounds),
        formatters=tuple(_formatters(options.get("formatters") or {}, agents)),
    )


def _parts(reward: object) -> tuple[tuple[str, ...], list[object]]:
    """Return the named components and the functions of a reward, or of a list of both."""
    items = reward if isinstance(reward, list | tuple) else [reward]
    if not items:
        raise InvalidArgumentError("reward must be a function, or a list of names and functions")
    names = tuple(each for each in items if isinstance(each, str) and ":" not in each)
    return names, [each for each in items if each not in names]


def _formatters(value: object, agents: Sequence[AgentID]) -> list[tuple[AgentID, Formatter]]:
    found: list[tuple[AgentID, Formatter]] = []
    for agent, given in _mapping("formatters", value).items():
        if agent not in agents:
            raise unknown_name("agent of formatters", agent, agents)
        if isinstance(given, str) and "{" in given:
            _check_template(agent, given)
            found.append((agent, given))
        else:
            found.append((agent, _function(f"formatter of {agent}", given)))
    return found


def _check_template(agent: AgentID, template: str) -> None:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidArgumentError(f"the formatter of {agent!r} is no template: {error}") from error
    for _, field, form, conversion in parts:
        if field is None:
            continue
        if field not in _FIELDS:
            raise unknown_name(f"field in the formatter of {agent!r}", field, _FIELDS)
        if form or conversion:
            raise InvalidArgumentError(
                f"the formatter of {agent!r} formats {field!r}: write {{{field}}}"
            )


def _function(name: str, value: object) -> Callable[..., Any]:
    """Return a function, imported if a text names it."""
    if not isinstance(value, str) and callable(value):
        return value
    if not isinstance(value, str) or not is_reference(value):
        raise InvalidArgumentError(
            f"{name} must be a function, 'module:function' or 'file.py:function', got {value!r}"
        )
    try:
        found = import_reference(value)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{name} {value!r} cannot be imported: {error}") from error
    if not callable(found):
        raise InvalidArgumentError(f"{name} {value!r} is not a function")
    return found  # type: ignore[no-any-return]  # its signature is known when it is called


def _bounds(value: object) -> tuple[float, float]:
    pair = value if isinstance(value, list | tuple) else ()
    for each in pair:
        check_number("reward_range", each)
    if len(pair) != 2 or pair[0] >= pair[1]:
        raise InvalidArgumentError(f"reward_range must be [low, high], got {value!r}")
    return float(pair[0]), float(pair[1])


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidArgumentError(f"{name} must be a mapping of names, got {value!r}")
    return value


def _told(value: object) -> object:
    """Return a value in which functions are replaced by what they do."""
    if isinstance(value, tuple):
        return tuple(map(_told, value))
    return function_text(value) if callable(value) else value

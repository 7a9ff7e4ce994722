"""Options of own rewards and prompts: functions, weights, processors and templates, checked."""

import hashlib
import inspect
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mlrl_envs.config import check_number, import_object
from mlrl_envs.errors import InvalidArgumentError, unknown_name
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
        keeps: Whether the components of the environment count.
        chain: Processors of the reward of each turn.
        bounds: Lowest and highest reward before the processors; None for those of the environment.
        formatters: Template or function of what an agent reads.
    """

    functions: tuple[tuple[str, Reward], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    keeps: bool = True
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
    if callable(reward) or (isinstance(reward, str) and ":" in reward):
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
    given = [options[name] for name in ("reward",) if name in options]
    functions = [_function("reward", each) for each in (*given, *(w for w in weights if ":" in w))]
    named = {name.rpartition(":")[2]: float(weight) for name, weight in weights.items()}
    bounds = options.get("reward_range") or (ANY_RANGE if functions or weights else None)
    return Rules(
        functions=tuple((getattr(each, "__name__", "reward"), each) for each in functions),
        weights=tuple(named.items()),
        keeps="reward" not in options,
        chain=as_chain(options.get("reward_processors") or ()),
        bounds=None if bounds is None else _bounds(bounds),
        formatters=tuple(_formatters(options.get("formatters") or {}, agents)),
    )


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
        if field is not None and (field not in _FIELDS or form or conversion):
            raise unknown_name(f"field in the formatter of {agent!r}", field, _FIELDS)


def _function(name: str, value: object) -> Callable[..., Any]:
    """Return a function, imported if a text names it."""
    if not isinstance(value, str) and callable(value):
        return value
    if not isinstance(value, str) or ":" not in value:
        raise InvalidArgumentError(f"{name} must be a function or 'module:function', got {value!r}")
    try:
        found = import_object(value)
    except (ImportError, AttributeError, ValueError) as error:
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
    """Return a value in which functions are replaced by their source."""
    if isinstance(value, tuple):
        return tuple(map(_told, value))
    if not callable(value):
        return value
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        code = getattr(value, "__code__", None)
        return repr(value) if code is None else code.co_code.hex()

"""Actors by reference: functions and classes of a module or a Python file."""

import functools
import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlrl_envs.errors import ContractError
from mlrl_envs.references import import_reference, is_reference
from mlrl_learners.config.options import check_names
from mlrl_learners.errors import ConfigError
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.types import Actor, AgentID

__all__ = ["is_code", "referenced_actor"]


def is_code(word: str) -> bool:
    """Return whether a word is `file.py:name`, or `module:name` of a module that can be found."""
    place, _, _ = word.rpartition(":")
    if not is_reference(word):
        return False
    try:
        return place.endswith(".py") or importlib.util.find_spec(place) is not None
    except (ImportError, ValueError):
        return False


def referenced_actor(
    reference: str, agents: Sequence[AgentID], seed: int, options: Mapping[str, Any]
) -> Actor:
    """Make an actor from `module:name` or `file.py:name`.

    Args:
        reference: An actor, a class or function with a parameter `agents` that makes one, or a
            function of an agent and its observation that returns the answer.
        agents: Agents that it acts for.
        seed: Passed as `seed` if the function takes it.
        options: Further keyword arguments of the class or function.

    Raises:
        ConfigError: If the object is none of these, what it makes is no actor, or an option is
            one of `agents` and `seed`.
        UnknownNameError: If it takes no such option.
    """
    found = import_reference(reference)
    if hasattr(found, "act") and not inspect.isclass(found):
        check_names(options, ())
        actor: Actor = found
        return actor
    if not callable(found):
        raise ConfigError(f"{reference!r} must be an actor or a function, got {found!r}")
    known = inspect.signature(found).parameters
    if inspect.isclass(found) or "agents" in known:
        given = {"agents": tuple(agents), "seed": seed}
        check_names(options, known)
        if set_here := options.keys() & given.keys():
            raise ConfigError(f"{min(set_here)} is set by the command; leave the option out")
        made: Actor = found(**{name: given[name] for name in given if name in known}, **options)
        if not hasattr(made, "act"):
            raise ConfigError(f"{reference!r} must make an actor with a method act, got {made!r}")
        return made
    if len(known) < 2:
        raise ConfigError(f"{reference!r} must take an agent and its observation")
    check_names(options, ())
    return ScriptedActor(functools.partial(_answer, found, reference))


def _answer(
    script: Callable[[AgentID, str], object], reference: str, agent: AgentID, observation: str
) -> str:
    text = script(agent, observation)
    if not isinstance(text, str):
        raise ContractError(f"{reference!r} must return a str, got {text!r} for {agent!r}"[:500])
    return text

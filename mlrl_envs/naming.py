"""Ids of environments and factories that a caller holds; options, scripts and tools of an id."""

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from mlrl_envs.config import SHELL_OPTIONS
from mlrl_envs.errors import DataNotFoundError, InvalidArgumentError
from mlrl_envs.references import is_reference, reference_to
from mlrl_envs.registration import REMOTE, registry
from mlrl_envs.types import Json, TextEnv

__all__ = ["config_of", "id_of", "is_in_memory", "options_of", "scripts_of", "tools_of"]


def id_of(env: str | TextEnv | Callable[..., TextEnv]) -> str:
    """Return the id under which `mlrl_envs.make` makes an environment in this process.

    Args:
        env: An id, a function or class that makes environments, or an environment, of which
            copies are made. A function or class at the top of a module gets the id `module:name`,
            or `file.py:name` in a script; commands accept such an id later. Others have an id in
            this process alone.
    """
    if isinstance(env, str):
        return env
    if callable(env):
        env_id = reference_to(env)
        registry.give(env_id, env)
        return env_id
    prototype: TextEnv = env
    name = getattr(env, "metadata", {}).get("name") or type(env).__name__
    env_id = f"{name} (in memory)"
    registry.give(env_id, lambda: copy.deepcopy(prototype))
    return env_id


def is_in_memory(env_id: str) -> bool:
    """Return whether only this process can make an environment; see `id_of`.

    Another process can if the id is a reference to what was given, in a file or an installed
    module.
    """
    if not registry.is_given(env_id):
        return False
    if not is_reference(env_id) or env_id.startswith("__main__:"):
        return True
    factory: Any = registry[env_id].load()
    module = sys.modules.get(getattr(factory, "__module__", None) or type(factory).__module__)
    return getattr(module, env_id.rpartition(":")[2], None) is not factory


def config_of(env_id: str) -> Any:  # noqa: ANN401  a dataclass or None
    """Return the dataclass of the options of a task family or a game; None for others."""
    factory = registry[env_id].load()
    return getattr(getattr(factory, "__self__", factory), "config_type", None)


def scripts_of(env_id: str) -> list[str]:
    """Return the names of the scripted players of a game; empty for other environments."""
    family = getattr(registry[env_id].load(), "__self__", None)
    if not hasattr(family, "game_type"):
        return []
    env = registry[env_id].load()()
    try:
        return list(getattr(env, "scripts", ()))
    finally:
        env.close()


def options_of(env_id: str) -> list[str] | None:
    """Return the names of an environment's options; None if its function accepts any.

    A server is asked for those of its environments. The answer is None if it cannot make this one
    without options.

    Raises:
        UnknownNameError: If there is no such environment.
        RemoteEnvError: If no server answers.
    """
    if env_id.startswith(REMOTE):
        return _options_at_server(env_id)
    config = config_of(env_id)
    if config is not None:
        return [each.name for each in fields(config)] + list(SHELL_OPTIONS)
    parameters = inspect.signature(registry[env_id].load()).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return list(parameters)


def _options_at_server(env_id: str) -> list[str] | None:
    factory: Any = registry[env_id].load()
    with contextlib.suppress(InvalidArgumentError, DataNotFoundError):
        names: list[str] | None = factory().option_names
        return names
    return None


def tools_of(env_id: str) -> list[dict[str, Json]]:
    """Return the JSON schemas of an environment's tools in the form of OpenAI's parameter `tools`.

    They are those of the function `tools` of the task family, or of the class or function that
    makes the environment.

    Raises:
        UnknownNameError: If there is no such environment.
        InvalidArgumentError: If it has no tools; the message names environments that have some.
    """
    found = _tools(env_id)
    if not found:
        known = ", ".join(_ids_with_tools()) or "none"
        raise InvalidArgumentError(f"{env_id!r} has no tools; environments with tools: {known}")
    return found


def _tools(env_id: str) -> list[dict[str, Json]]:
    factory = registry[env_id].load()
    tools = getattr(getattr(factory, "__self__", factory), "tools", None)
    return list(tools()) if callable(tools) else []


def _ids_with_tools() -> Iterator[str]:
    for env_id in registry:
        with contextlib.suppress(InvalidArgumentError):  # entry point of another package
            if _tools(env_id):
                yield env_id

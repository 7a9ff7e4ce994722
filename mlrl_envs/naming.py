"""Ids of environments and factories that a caller holds, and names of the options of an id."""

import copy
import inspect
from collections.abc import Callable

from mlrl_envs.references import reference_to
from mlrl_envs.registration import registry
from mlrl_envs.types import TextEnv

__all__ = ["id_of", "options_of"]


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


def options_of(env_id: str) -> list[str] | None:
    """Return the names of an environment's options; None if its function accepts any.

    Raises:
        UnknownNameError: If there is no such environment.
    """
    parameters = inspect.signature(registry[env_id].load()).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return list(parameters)

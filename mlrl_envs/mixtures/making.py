"""Mixtures from ids, weights and options of their environments."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.mixtures.env import MIXTURE, Member, MixtureEnv
from mlrl_envs.naming import options_of
from mlrl_envs.registration import make

__all__ = ["KEYS", "factory_of", "mixture"]

KEYS = ("id", "name", "weight", "options")
"""Keys of an entry."""


def mixture(envs: Sequence[Mapping[str, Any] | str], split: str | None = None) -> MixtureEnv:
    """Several environments as one: every episode is one of them, drawn by weight.

    Args:
        envs: For each, an id, or a mapping with `id`, `name` (the id without namespace and version
            if left out), `weight` (1 if left out) and `options`.
        split: Split of every environment that has this option, in place of that in its `options`.

    Raises:
        UnknownNameError: If an entry has an unknown key, or see `mlrl_envs.make`.
        InvalidArgumentError: If there is no entry, one has no id, two have the same name, or a
            weight is not above 0.
    """
    if isinstance(envs, str | Mapping) or not isinstance(envs, Sequence) or not envs:
        raise InvalidArgumentError(f"envs must be a list of environments, got {envs!r}")
    return MixtureEnv([_member(each, split) for each in envs])


def factory_of(env_id: str) -> Any:  # noqa: ANN401  a function
    """Return `mixture` for its id, as the registry asks.

    Raises:
        UnknownNameError: For other ids.
    """
    if env_id != MIXTURE:
        raise unknown_name("environment", env_id, [MIXTURE])
    return mixture


def _member(entry: Mapping[str, Any] | str, split: str | None) -> Member:
    given: Mapping[str, Any] = {"id": entry} if isinstance(entry, str) else entry
    if not isinstance(given, Mapping) or not isinstance(given.get("id"), str):
        raise InvalidArgumentError(f"an environment of a mixture needs an id, got {entry!r}")
    for key in given:
        if key not in KEYS:
            raise unknown_name("key of an environment", key, KEYS)
    if not isinstance(given.get("options") or {}, Mapping):
        raise InvalidArgumentError(f"options of {given['id']} must be a mapping, got {given!r}")
    env_id, options = given["id"], dict(given.get("options") or {})
    if split is not None:
        known = options_of(env_id)
        if known is None or "split" in known:
            options["split"] = split
    short = env_id.rpartition("/")[2].rpartition(":")[2].partition("-v")[0]
    return Member(given.get("name") or short, make(env_id, **options), given.get("weight", 1.0))

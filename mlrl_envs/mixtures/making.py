"""Construction of mixtures from ids, weights and options of environments."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.mixtures.env import MIXTURE, Member, MixtureEnv
from mlrl_envs.naming import options_of
from mlrl_envs.registration import make

__all__ = ["KEYS", "factory_of", "mixture"]

KEYS = ("id", "name", "weight", "options")
"""Keys of an entry of `envs`."""


def mixture(
    envs: Sequence[Mapping[str, Any] | str],
    split: str | None = None,
    render_mode: str | None = None,
) -> MixtureEnv:
    """Several environments as one: each episode is played by one of them, drawn by weight.

    Args:
        envs: Ids, or mappings with `id`, `name` (by default the id without namespace and version),
            `weight` (by default 1) and `options`.
        split: Split of each environment that has such an option; replaces the one in its `options`.
        render_mode: Render mode of each environment that has such an option, likewise.

    Raises:
        UnknownNameError: If a key, an environment or an option is unknown.
        InvalidArgumentError: If `envs` is empty, an entry has no id, two entries have the same
            name, or a weight is not above 0.
    """
    if isinstance(envs, str | Mapping) or not isinstance(envs, Sequence) or not envs:
        raise InvalidArgumentError(f"envs must be a list of environments, got {envs!r}")
    shared = {"split": split, "render_mode": render_mode}
    chosen = {name: value for name, value in shared.items() if value is not None}
    return MixtureEnv([_member(each, chosen) for each in envs])


def factory_of(env_id: str) -> Any:  # noqa: ANN401  a function
    """Return the factory of the id `MIXTURE`, which is `mixture`; the registry calls this.

    Raises:
        UnknownNameError: For other ids.
    """
    if env_id != MIXTURE:
        raise unknown_name("environment", env_id, [MIXTURE])
    return mixture


def _member(entry: Mapping[str, Any] | str, shared: Mapping[str, Any]) -> Member:
    given: Mapping[str, Any] = {"id": entry} if isinstance(entry, str) else entry
    if not isinstance(given, Mapping) or not isinstance(given.get("id"), str):
        raise InvalidArgumentError(f"an environment of a mixture needs an id, got {entry!r}")
    for key in given:
        if key not in KEYS:
            raise unknown_name("key of an environment", key, KEYS)
    if not isinstance(given.get("options") or {}, Mapping):
        raise InvalidArgumentError(f"options of {given['id']} must be a mapping, got {given!r}")
    env_id, options = given["id"], dict(given.get("options") or {})
    if shared:
        known = options_of(env_id)
        options |= {k: value for k, value in shared.items() if known is None or k in known}
    short = env_id.rpartition("/")[2].rpartition(":")[2].partition("-v")[0]
    return Member(given.get("name") or short, make(env_id, **options), given.get("weight", 1.0))

"""Section `env` of a configuration: the environment, or several, and the servers that play it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.mixtures import KEYS, MIXTURE
from mlrl_envs.naming import id_of, options_of
from mlrl_envs.references import absolute, is_reference
from mlrl_envs.serve import remote_id
from mlrl_envs.types import TextEnv
from mlrl_envs.workflows import with_graph
from mlrl_learners.errors import ConfigError, unknown_name

__all__ = [
    "DEFAULT_SPLIT",
    "EnvConfig",
    "EnvLike",
    "chosen_env",
    "evaluation_options",
    "portable_options",
    "several_envs",
    "stored_options",
    "with_absolute_id",
    "with_default_split",
    "with_env_mapping",
]

DEFAULT_SPLIT = "eval"
EnvLike: TypeAlias = str | TextEnv | Callable[..., TextEnv]
"""An id, an environment, or a function or class that makes one."""
ENTRIES = "envs"  # option of a mixture


@dataclass(frozen=True)
class EnvConfig:
    """The environment of a run.

    Attributes:
        id: An environment of `mlrl list`, or a reference `module:name` or `file.py:name`.
        options: Options of the environment, such as `split`, `max_turns`, `feedback` or `reward`.
        server: Environment servers that play it, `host:port`; null for this process. A resumed run
            may change it if data and scorer are the same.
    """

    id: str
    options: dict[str, Any] = field(default_factory=dict)
    server: str | list[str] | None = None

    @property
    def location(self) -> str:
        """The id for `mlrl_envs.make`, with the servers if there are some."""
        return remote_id(self.id, self.server)


def several_envs(entries: Sequence[Any]) -> dict[str, Any]:
    """Return the values of section `env` for several environments, which one run plays.

    Args:
        entries: For each an environment, or a mapping with `id` (an environment, too) and, if
            needed, `name`, `weight`, `options` and `server`.

    Raises:
        ConfigError: If there is no entry, or one has no id.
        UnknownNameError: If an entry has an unknown key.
    """
    if not entries:
        raise ConfigError("env needs at least one environment, got an empty list")
    return {"id": MIXTURE, "options": {ENTRIES: [_entry(each) for each in entries]}}


def with_env_mapping(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return sections of a configuration whose `env` is a mapping, also for several environments.

    Raises:
        ConfigError: See `several_envs`.
    """
    env = sections.get("env")
    return {**sections, "env": several_envs(env)} if isinstance(env, list) else dict(sections)


def chosen_env(
    env_id: str | None,
    env: EnvLike | Sequence[Any] | None,
    env_options: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Return the id and the options of what is given: an id, an environment, or a list of several.

    Raises:
        ConfigError: If neither or both are given, or see `several_envs`.
    """
    if (env_id is None) == (env is None):
        raise ConfigError("give env_id, the id of an environment, or env, and not both")
    options = dict(env_options or {})
    if isinstance(env, list | tuple):
        values = several_envs(env)
        return values["id"], {**values["options"], **options}
    return id_of(env_id if env is None else env), options  # type: ignore[arg-type]  # one is given


def with_absolute_id(config: EnvConfig) -> EnvConfig:
    """Return the section with absolute paths of Python files, for use in any folder."""
    options = portable_options(config.id, config.options)
    return replace(config, id=absolute(config.id), options=options)


def portable_options(env_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with absolute paths of Python files, and the graphs of workflows in files.

    Args:
        env_id: The environment, which may be a mixture.
        options: Its options.

    Raises:
        InvalidArgumentError: If the file of a workflow cannot be read, or holds no mapping.
    """
    found = _for_any_folder(options)
    if env_id == MIXTURE and isinstance(found.get(ENTRIES), list):
        found[ENTRIES] = [
            _absolute_entry(each) if isinstance(each, dict) and "id" in each else each
            for each in found[ENTRIES]
        ]
    return found


def stored_options(env_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that a run or a collection stored, as `portable_options` does, to compare.

    Earlier versions stored relative paths. If the file of a workflow cannot be read any more, the
    options are returned as they are.
    """
    try:
        return portable_options(env_id, options)
    except InvalidArgumentError:
        return dict(options)


def _absolute_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    options = entry.get("options")
    made = {"options": _for_any_folder(options)} if isinstance(options, Mapping) else {}
    return {**entry, "id": absolute(entry["id"]), **made}


def _for_any_folder(options: Mapping[str, Any]) -> dict[str, Any]:
    found = with_graph(options)
    if isinstance(found.get("reward"), str):
        found["reward"] = absolute(found["reward"])
    if isinstance(found.get("reward"), list):
        found["reward"] = [absolute(r) if isinstance(r, str) else r for r in found["reward"]]
    if isinstance(found.get("reward_weights"), Mapping):
        found["reward_weights"] = {absolute(k): v for k, v in found["reward_weights"].items()}
    if isinstance(found.get("formatters"), Mapping):
        found["formatters"] = {
            agent: absolute(f) if isinstance(f, str) and is_reference(f) else f
            for agent, f in found["formatters"].items()
        }
    return found


def _entry(given: Any) -> dict[str, Any]:  # noqa: ANN401  a mapping or an environment
    values = dict(given) if isinstance(given, Mapping) else {"id": given}
    for key in values:
        if key not in (*KEYS, "server"):
            raise unknown_name("key of an environment", str(key), [*KEYS, "server"])
    if values.get("id") is None:
        raise ConfigError(f"an environment of env needs an id, got {given!r}")
    server = values.pop("server", None)
    return {**values, "id": remote_id(id_of(values["id"]), server)}


def evaluation_options(env_id: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of an evaluation, with the split `eval` if they name none.

    Args:
        env_id: A location as in `EnvConfig.location`.
        options: Options of the environment, or None.
    """
    return with_default_split(env_id, options or {}, DEFAULT_SPLIT)


def with_default_split(env_id: str, options: Mapping[str, Any], default: str) -> dict[str, Any]:
    """Return options of an environment, with a default split if they name none.

    Where the environment has no option `split`, the default split is left out.

    Args:
        env_id: A location as in `EnvConfig.location`.
        options: Options of the environment.
        default: The default split.
    """
    chosen = dict(options)
    if chosen.get("split") is None:
        chosen["split"] = default
    known = options_of(env_id)
    if chosen["split"] == default and known is not None and "split" not in known:
        del chosen["split"]
    return chosen

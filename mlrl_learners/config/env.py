"""Section `env` of a configuration: the environment, and the servers that play it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlrl_envs.naming import id_of, options_of
from mlrl_envs.serve import remote_id
from mlrl_envs.types import TextEnv
from mlrl_learners.errors import ConfigError

__all__ = ["DEFAULT_SPLIT", "EnvConfig", "chosen_env", "evaluation_options"]

DEFAULT_SPLIT = "eval"


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


def chosen_env(env_id: str | None, env: str | TextEnv | Callable[..., TextEnv] | None) -> str:
    """Return the id of the environment that is given by an id or by itself.

    Raises:
        ConfigError: If neither or both are given.
    """
    if (env_id is None) == (env is None):
        raise ConfigError("give env_id, the id of an environment, or env, and not both")
    return id_of(env_id if env is None else env)  # type: ignore[arg-type]  # one is given


def evaluation_options(env_id: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of an evaluation, with the split `eval` if they name none.

    Args:
        env_id: A location as in `EnvConfig.location`. Where the environment has no option `split`,
            the default split is left out.
        options: Options of the environment, or None.
    """
    chosen = dict(options or {})
    if chosen.get("split") is None:
        chosen["split"] = DEFAULT_SPLIT
    known = options_of(env_id)
    if chosen["split"] == DEFAULT_SPLIT and known is not None and "split" not in known:
        del chosen["split"]
    return chosen

"""Environments by id: ours, those registered by callers, and those of installed packages.

A package offers environments through the entry-point group `mlrl.envs`: the entry's name is the
id, its value `package.module:function`. They are looked up when the registry is first read, not
when `mlrl_envs` is imported. Every id is entered in PettingZoo's own registry as well, under
`"parallel"` and `"aec"`.
"""

import copy
import functools
import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pettingzoo

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.shell.aec import to_aec
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.vector import VectorEnv
from mlrl_envs.types import TextEnv

__all__ = ["BUILT_IN", "ENTRY_POINT_GROUP", "EnvSpec", "make", "make_vec", "register", "registry"]

ENTRY_POINT_GROUP = "mlrl.envs"
EnvFactory = Callable[..., TextEnv]

_ID = re.compile(r"[\w.-]+/[\w.-]+-v\d+")
BUILT_IN = {
    "mlrl/story-v0": "mlrl_envs.envs.story:parallel_env",
    "mlrl/tldr-v0": "mlrl_envs.envs.tldr:parallel_env",
    "mlrl/arxiv-v0": "mlrl_envs.envs.arxiv:parallel_env",
    "mlrl/humaneval-v0": "mlrl_envs.envs.humaneval:parallel_env",
    "mlrl/coophumaneval-v0": "mlrl_envs.envs.coophumaneval:parallel_env",
    "mlrl/mbpp-v0": "mlrl_envs.envs.mbpp:parallel_env",
    "mlrl/classeval-v0": "mlrl_envs.envs.classeval:parallel_env",
    "mlrl/math-v0": "mlrl_envs.envs.math:parallel_env",
    "mlrl/debate-v0": "mlrl_envs.envs.debate:parallel_env",
    "mlrl/tools-v0": "mlrl_envs.envs.tools:parallel_env",
}


@dataclass(frozen=True)
class EnvSpec:
    """How an environment is made.

    Attributes:
        id: `namespace/name-vN`.
        entry_point: A function that returns a parallel environment, or `"module:function"`.
    """

    id: str
    entry_point: str | EnvFactory

    def load(self) -> EnvFactory:
        """Import and return the function.

        Raises:
            InvalidArgumentError: If it cannot be imported.
        """
        if not isinstance(self.entry_point, str):
            return self.entry_point
        module_name, _, name = self.entry_point.partition(":")
        try:
            factory = getattr(importlib.import_module(module_name), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{self.id}: entry point {self.entry_point!r} cannot be imported: {error}"
            ) from error
        return factory  # type: ignore[no-any-return]  # a plug point: checked when it is called


class Registry(Mapping[str, EnvSpec]):
    """Specs by id; reading it takes in the entry points of installed packages."""

    def __init__(self) -> None:
        self._specs: dict[str, EnvSpec] = {}
        self._plugins_read = False

    def add(self, spec: EnvSpec) -> None:
        """Enter a spec here and in PettingZoo's registry.

        Raises:
            InvalidArgumentError: If its id is malformed or taken by another entry point.
        """
        if not _ID.fullmatch(spec.id):
            raise InvalidArgumentError(f"an id reads namespace/name-v0, got {spec.id!r}")
        known = self._specs.get(spec.id)
        if known is not None and known != spec:
            raise InvalidArgumentError(f"{spec.id!r} is taken by {known.entry_point!r}")
        self._specs[spec.id] = spec
        _tell_pettingzoo(spec.id)

    def __getitem__(self, env_id: str) -> EnvSpec:
        self._read_plugins()
        if env_id not in self._specs:
            raise unknown_name("environment", env_id, self._specs)
        return self._specs[env_id]

    def __iter__(self) -> Iterator[str]:
        self._read_plugins()
        return iter(list(self._specs))

    def __len__(self) -> int:
        self._read_plugins()
        return len(self._specs)

    def __contains__(self, env_id: object) -> bool:
        self._read_plugins()
        return env_id in self._specs

    def get(self, env_id: str, default: Any = None) -> Any:  # noqa: ANN401  as in Mapping
        """Return a spec, or `default` where there is none of that id."""
        self._read_plugins()
        return self._specs.get(env_id, default)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self)})"

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        self._plugins_read = True
        for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
            if entry.name not in self._specs:
                self.add(EnvSpec(entry.name, entry.value))


registry = Registry()


def register(env_id: str, entry_point: str | EnvFactory) -> None:
    """Register an environment under an id of its own.

    Args:
        env_id: `namespace/name-vN`; a change that moves scores needs a new N.
        entry_point: `"package.module:function"`, or the function itself.

    Raises:
        InvalidArgumentError: If the id is malformed or taken.
    """
    registry.add(EnvSpec(env_id, entry_point))


def make(env_id: str, **options: Any) -> TextEnv:  # noqa: ANN401  per environment
    """Make an environment.

    Args:
        env_id: One of `mlrl_envs.registry`.
        **options: The environment's own; its page lists them.

    Raises:
        UnknownNameError: If there is no such id or option; the message names the nearest.
        InvalidArgumentError: If an option is outside its range.
        DataNotFoundError: If its data set is in none of the places it may be in.
    """
    factory = registry[env_id].load()
    _check_options(factory, options)
    return factory(**options)


def make_vec(env_id: str, num_envs: int, **options: Any) -> VectorEnv:  # noqa: ANN401  per environment
    """Make many copies of an environment that are stepped, and scored, as one batch.

    Args:
        env_id: One of `mlrl_envs.registry`.
        num_envs: How many, at least 1.
        **options: As in `make`.

    Raises:
        InvalidArgumentError: If `num_envs` is below 1; otherwise as `make`.
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise InvalidArgumentError(f"num_envs must be an int of at least 1, got {num_envs!r}")
    first = make(env_id, **options)
    if isinstance(first, TextParallelEnv):  # copies share the family, and so become one batch
        return VectorEnv([first, *(copy.deepcopy(first) for _ in range(num_envs - 1))])
    return VectorEnv([first, *(make(env_id, **options) for _ in range(num_envs - 1))])


def _check_options(factory: EnvFactory, options: Mapping[str, object]) -> None:
    parameters = inspect.signature(factory).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return  # it checks its options itself
    for name in options:
        if name not in parameters:
            raise unknown_name("option", name, parameters)


def _tell_pettingzoo(env_id: str) -> None:
    if env_id not in pettingzoo.parallel_registry:
        pettingzoo.register("parallel", env_id, functools.partial(make, env_id))
    if env_id not in pettingzoo.aec_registry:
        pettingzoo.register("aec", env_id, functools.partial(_make_aec, env_id))


def _make_aec(env_id: str, **options: Any) -> pettingzoo.AECEnv[str, str, str]:  # noqa: ANN401
    return to_aec(make(env_id, **options))


for _env_id, _entry_point in BUILT_IN.items():
    register(_env_id, _entry_point)

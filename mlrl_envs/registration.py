"""Registry of environments: built-in, registered by callers, and provided by installed packages.

A package provides environments through the entry-point group `mlrl.envs`: the name of an entry is
the id, its value `package.module:function`. Entry points are read when the registry is first used.
Every id is also added to PettingZoo's registries `"parallel"` and `"aec"`. Ids of adapters, such as
`textarena/Nim-v0`, are found but not listed, because they need an extra. References, `module:name`
or `file.py:name`, name environments that are not registered; `module:ID` or `file.py:ID` imports
the code that registers an id. A built-in environment is a module in `mlrl_envs.envs` or
`mlrl_envs.games`, listed in `BUILT_IN_TASKS`, `BUILT_IN_TURNS` or `BUILT_IN_GAMES`.
"""

import copy
import functools
import importlib.metadata
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pettingzoo

from mlrl_envs.config import check_arguments, import_object
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError, UnknownNameError, unknown_name
from mlrl_envs.references import import_module, import_reference, is_reference, same
from mlrl_envs.shell.aec import to_aec
from mlrl_envs.shell.custom import customized
from mlrl_envs.shell.custom_options import take_custom
from mlrl_envs.shell.own_prompts import take_prompts, with_sources
from mlrl_envs.shell.vector import VectorEnv
from mlrl_envs.types import BatchedEnv, TextEnv
from mlrl_envs.workflows import workflow

__all__ = [
    "BUILT_IN",
    "BUILT_IN_GAMES",
    "BUILT_IN_TASKS",
    "BUILT_IN_TURNS",
    "ENTRY_POINT_GROUP",
    "EnvSpec",
    "make",
    "make_vec",
    "register",
    "registry",
]

ENTRY_POINT_GROUP = "mlrl.envs"
REMOTE = "remote:"  # the server makes the environment with all options
WORKFLOW = "workflow"  # option of every environment
EnvFactory = Callable[..., TextEnv]
_ID = re.compile(r"[\w.-]+/[\w.-]+-v\d+")
BUILT_IN_TASKS = {
    f"mlrl/{module}-{version}": f"mlrl_envs.envs.{module}:parallel_env"
    for module, version in (
        ("story", "v1"), ("tldr", "v1"), ("arxiv", "v1"), ("humaneval", "v1"),
        ("coophumaneval", "v1"), ("mbpp", "v1"), ("functions", "v0"), ("classeval", "v1"),
        ("math", "v2"), ("debate", "v1"), ("tools", "v1"), ("strbuild", "v0"),
        ("housebuild", "v0"),
    )
}  # fmt: skip
BUILT_IN_GAMES = {
    f"mlrl/{module.replace('_', '-')}-v0": f"mlrl_envs.games.{module}:parallel_env"
    for module in (
        "connect_four", "hanabi", "kuhn", "liars_dice", "matrix", "negotiation", "network", "nim",
        "public_goods", "puzzle", "tictactoe",
    )
}  # fmt: skip
# Task families whose agents take turns.
BUILT_IN_TURNS = {"mlrl/coder-tester-v1": "mlrl_envs.envs.coder_tester:parallel_env"}
# Functions that return the factory of an id, by namespace.
ADAPTERS = {
    "textarena": "mlrl_envs.interop.textarena:factory_of",
    REMOTE: "mlrl_envs.serve.client:factory_of",
    "env-mixture": "mlrl_envs.mixtures:factory_of",
}
BUILT_IN = {**BUILT_IN_TASKS, **BUILT_IN_TURNS, **BUILT_IN_GAMES}


@dataclass(frozen=True)
class EnvSpec:
    """Specification of a registered environment.

    Attributes:
        id: The id, `namespace/name-vN`.
        entry_point: A function that returns a parallel environment, or `"module:function"`.
    """

    id: str
    entry_point: str | EnvFactory

    def load(self) -> EnvFactory:
        """Return the function, imported if necessary.

        Raises:
            InvalidArgumentError: If the entry point cannot be imported.
        """
        if not isinstance(self.entry_point, str):
            return self.entry_point
        try:
            is_file = ".py:" in self.entry_point
            factory = (import_reference if is_file else import_object)(self.entry_point)
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"{self.id}: entry point {self.entry_point!r} cannot be imported: {error}"
            ) from error
        return factory  # type: ignore[no-any-return]  # known only when it is called


class Registry(Mapping[str, EnvSpec]):
    """A mapping of ids to specifications; the first read adds those of installed packages.

    Ids of adapters (`ADAPTERS`) and references are in the mapping, but iteration leaves them out.
    """

    def __init__(self) -> None:
        self._specs: dict[str, EnvSpec] = {}
        self._given: dict[str, EnvFactory] = {}
        self._plugins_read = False

    def give(self, env_id: str, factory: EnvFactory) -> None:
        """Keep a factory of this process under a reference, without registering it."""
        self._given[env_id] = factory

    def is_given(self, env_id: str) -> bool:
        """Return whether `give` has kept a factory under an id."""
        return env_id in self._given

    def add(self, spec: EnvSpec) -> None:
        """Add a specification to this registry and to PettingZoo's.

        Raises:
            InvalidArgumentError: If the id is malformed or already registered with another entry
                point.
        """
        if not isinstance(spec.id, str) or not _ID.fullmatch(spec.id):
            raise InvalidArgumentError(f"an id must be like namespace/name-v0, got {spec.id!r}")
        known = self._specs.get(spec.id)
        if known is not None and not same(known.entry_point, spec.entry_point):
            raise InvalidArgumentError(f"{spec.id!r} is taken by {known.entry_point!r}")
        self._specs[spec.id] = spec
        _register_with_pettingzoo(spec.id)

    def __getitem__(self, env_id: str) -> EnvSpec:
        if not isinstance(env_id, str):
            raise UnknownNameError(f"the id of an environment must be a str, got {env_id!r}")
        self._read_plugins()
        if env_id in self._specs:
            return self._specs[env_id]
        if env_id in self._given:
            return EnvSpec(env_id, self._given[env_id])
        adapter = ADAPTERS.get(env_id.partition("/")[0])
        if adapter is not None:
            return EnvSpec(env_id, import_object(adapter)(env_id))
        place, colon, name = env_id.rpartition(":")
        if colon and place and _ID.fullmatch(name):
            import_module(place)
            return self[name]
        if is_reference(env_id):
            return EnvSpec(env_id, _callable(env_id))
        raise self._unknown(env_id)

    def __iter__(self) -> Iterator[str]:
        self._read_plugins()
        return iter(list(self._specs))

    def __len__(self) -> int:
        self._read_plugins()
        return len(self._specs)

    def __contains__(self, env_id: object) -> bool:
        return isinstance(env_id, str) and self.get(env_id) is not None

    def get(self, env_id: str, default: Any = None) -> Any:  # noqa: ANN401  as in Mapping
        """Return the specification of an id, or `default` if it is not registered."""
        try:
            return self[env_id]
        except UnknownNameError:
            return default

    def _unknown(self, env_id: str) -> UnknownNameError:
        if env_id.endswith(".py"):
            return UnknownNameError(f"{env_id!r} is a file; name what it makes: {env_id}:NAME")
        base, _, version = env_id.rpartition("-v")
        parts = [known.rpartition("-v") for known in self._specs]
        versions = [int(number) for name, _, number in parts if name == base]
        if base and version.isdecimal() and versions:
            latest = f"{base}-v{max(versions)}"
            if max(versions) > int(version):
                return UnknownNameError(f"environment {env_id!r} was replaced by {latest!r}")
        return unknown_name("environment", env_id, self._specs)

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
    """Register an environment.

    Args:
        env_id: The id, `namespace/name-vN`; changes that affect scores need a new N.
        entry_point: `"package.module:function"`, `"file.py:function"`, or the function itself.

    Raises:
        InvalidArgumentError: If the id is malformed or already registered with another entry point.
    """
    registry.add(EnvSpec(env_id, entry_point))


def make(env_id: str, **options: Any) -> TextEnv:  # noqa: ANN401  per environment
    """Make an environment.

    Args:
        env_id: An id of `mlrl_envs.registry`, `remote://host:port/ID` for one of a server, a
            reference `module:name` or `file.py:name` of a function or class, or `module:ID` for an
            id that a module registers.
        **options: Options of the environment; its page lists them. Every environment takes
            `workflow`, whose agents then play it, see `mlrl_envs.workflow`; a function as
            `reward`; and `reward_weights`, `reward_processors`, `reward_range` and `formatters`,
            see `mlrl_envs.shell.custom.customized`. Those of writers take `prompts`.

    Raises:
        UnknownNameError: If the id or an option is unknown; the message suggests the nearest name.
        InvalidArgumentError: If an option is missing or out of range, or no environment is made.
        DataNotFoundError: If the data set is not found.
    """
    factory = registry[env_id].load()
    if env_id.startswith(REMOTE):
        return factory(**options)
    graph, custom = options.pop(WORKFLOW, None), take_custom(options)
    sources = take_prompts(options, getattr(factory, "__self__", None))
    check_arguments(factory, options)
    try:
        env = with_sources(_environment(factory(**options), env_id), sources)
    except UnicodeDecodeError as error:
        place = options.get("data_path") or f"the data of {env_id}"
        raise InvalidDataError(f"{place} is not UTF-8 text: {error.reason}") from error
    env = customized(env, custom) if custom else env
    return env if graph is None else workflow(env, graph)


def make_vec(env_id: str, num_envs: int, **options: Any) -> VectorEnv:  # noqa: ANN401  per environment
    """Make several copies of an environment that are stepped and scored as one batch.

    Args:
        env_id: An id of `mlrl_envs.registry`.
        num_envs: Number of copies, at least 1.
        **options: Options of the environment, see `make`.

    Raises:
        InvalidArgumentError: If `num_envs` is below 1; for other errors see `make`.
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise InvalidArgumentError(f"num_envs must be an int of at least 1, got {num_envs!r}")
    first = make(env_id, **options)
    if isinstance(first, BatchedEnv):  # copies share the family and are scored as one batch
        return VectorEnv([first, *(copy.deepcopy(first) for _ in range(num_envs - 1))])
    return VectorEnv([first, *(make(env_id, **options) for _ in range(num_envs - 1))])


def _callable(reference: str) -> EnvFactory:
    found = import_reference(reference)
    if not callable(found):
        raise InvalidArgumentError(
            f"{reference!r} must be a function or class that makes an environment, got {found!r}"
        )
    return found  # type: ignore[no-any-return]  # known only when it is called


def _environment(made: Any, env_id: str) -> Any:  # noqa: ANN401  any parallel environment
    if not (hasattr(made, "reset") and hasattr(made, "step")):
        raise InvalidArgumentError(
            f"{env_id!r} must make an environment with reset and step, got {type(made).__name__}; "
            "mlrl_envs.TextParallelEnv makes one of a task family"
        )
    return made


def _register_with_pettingzoo(env_id: str) -> None:
    if env_id not in pettingzoo.parallel_registry:
        pettingzoo.register("parallel", env_id, functools.partial(make, env_id))
    if env_id not in pettingzoo.aec_registry:
        pettingzoo.register("aec", env_id, functools.partial(_make_aec, env_id))


def _make_aec(env_id: str, **options: Any) -> pettingzoo.AECEnv[str, str, str]:  # noqa: ANN401
    return to_aec(make(env_id, **options))


for _env_id, _entry_point in BUILT_IN.items():
    register(_env_id, _entry_point)

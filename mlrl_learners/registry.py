"""Registry of learners: built-in ones, those registered at run time, and entry points.

A factory is called with the keywords `agents`, `seed`, `model` if one was given, and the options,
and returns a `Learner`; `seed` is left out if the factory does not accept it. Factories are stored
as `"module:function"` and imported on first use. Packages register learners through the entry-point
group `mlrl.learners`; registered names take precedence over entry points. A learner that is not
registered is named by a reference, `module:name` or `file.py:name`.
"""

import contextlib
import dataclasses
import importlib.metadata
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mlrl_envs.config import import_object
from mlrl_envs.references import import_reference, is_reference, reference_to, same
from mlrl_learners.config.options import check_names
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.types import AgentID, Learner

__all__ = ["BUILT_IN", "LearnerFactory", "LearnerSpec", "describe", "make", "register", "registry"]

ENTRY_POINT_GROUP = "mlrl.learners"

LearnerFactory = Callable[..., Learner]


@dataclass(frozen=True, slots=True)
class LearnerSpec:
    """Registered learner.

    Attributes:
        name: Name of the learner.
        factory: `"module:function"`, or the function itself.
        summary: One-line description.
        max_agents: Largest number of agents; None for no limit.
    """

    name: str
    factory: str | LearnerFactory
    summary: str = ""
    max_agents: int | None = None

    def load(self) -> LearnerFactory:
        """Import the factory.

        Raises:
            ConfigError: If it cannot be imported.
        """
        if callable(self.factory):
            return self.factory
        try:
            find = import_reference if ".py:" in self.factory else import_object
            return cast("LearnerFactory", find(self.factory))
        except ImportError as error:
            raise _cannot_import(self, error) from error
        except AttributeError as error:
            module, _, attribute = self.factory.partition(":")
            raise ConfigError(f"learner {self.name!r}: {module} has no {attribute!r}") from error


class _Registry(Mapping[str, LearnerSpec]):
    """Mapping of names to specs; entry points are read once, on first use."""

    def __init__(self) -> None:
        self._registered: dict[str, LearnerSpec] = {}
        self._entry_points: dict[str, LearnerSpec] | None = None

    def add(self, spec: LearnerSpec) -> None:
        self._registered[spec.name] = spec

    def _all(self) -> dict[str, LearnerSpec]:
        if self._entry_points is None:
            self._entry_points = _entry_points()
        return {**self._entry_points, **self._registered}

    def __getitem__(self, name: str) -> LearnerSpec:
        if name not in self._all() and is_reference(name):
            return LearnerSpec(name, import_reference(name))
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


_REGISTRY = _Registry()
_MADE: weakref.WeakKeyDictionary[Learner, dict[str, Any]] = weakref.WeakKeyDictionary()

registry: Mapping[str, LearnerSpec] = _REGISTRY
"""Specs of all learners, by name."""


def register(
    name: str, factory: str | LearnerFactory, *, summary: str = "", replace: bool = False
) -> None:
    """Register a learner.

    Args:
        name: Name for `make` and configurations.
        factory: `"module:function"`, imported on first use, or the function itself; see the
            module's docstring for its arguments.
        summary: One-line description for `mlrl list`.
        replace: Allow replacing a registered learner.

    Raises:
        ConfigError: If the factory is not of that form, or the name is taken.
    """
    if isinstance(factory, str) and not all(factory.partition(":")):
        raise ConfigError(f"factory must be 'module:function', got {factory!r}")
    taken = _REGISTRY.get(name)
    if taken is not None and not same(taken.factory, factory) and not replace:
        raise ConfigError(
            f"learner {name!r} is already {taken.factory}; pass replace=True to replace it"
        )
    _REGISTRY.add(LearnerSpec(name, factory, summary))


def make(
    name: str,
    *,
    agents: Sequence[AgentID],
    model: object = None,
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - each learner checks its own options
) -> Learner:
    """Build a learner.

    Args:
        name: Name in `registry`, or a reference `module:name` or `file.py:name` of a factory.
        agents: Agents of the environment.
        model: Model that the agents start from: for built-in learners a name, a folder, or a
            mapping of agents to these. None for learners without models.
        seed: Seed of everything that the learner samples.
        **options: Options of the learner.

    Raises:
        UnknownNameError: If the learner or one of its options is unknown.
        ConfigError: If a value is outside its range.
    """
    if name not in registry:
        raise unknown_name("learner", name, registry)
    if isinstance(agents, str):
        raise ConfigError(f"agents must be a list of names, such as ['{agents}'], got {agents!r}")
    factory = registry[name].load()
    arguments = {**options, "agents": tuple(agents)}
    if model is not None:
        arguments["model"] = model
    learner = factory(**_fit_signature(name, factory, {**arguments, "seed": seed}))
    with contextlib.suppress(TypeError):  # classes with slots may not support weak references
        _MADE[learner] = {"name": name, "model": _as_json(model), "options": _as_json(options)}
    return learner


def describe(learner: Learner) -> dict[str, Any]:
    """Return the `learner` section of a configuration for a learner.

    For a learner that was not built by `make`, the section contains the reference of its class
    alone.
    """
    return dict(_MADE.get(learner) or {"name": reference_to(type(learner))})


def _as_json(value: object) -> object:
    """Return a value as JSON values; other objects become the name of their type."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _as_json(dataclasses.asdict(value))
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return str(value) if isinstance(value, Path) else f"a {type(value).__name__} in memory"


def _fit_signature(
    name: str, factory: LearnerFactory, arguments: dict[str, object]
) -> dict[str, object]:
    """Check keywords before the call, and drop a seed that the factory does not accept."""
    parameters = inspect.signature(factory).parameters.values()
    for each in parameters:
        is_named = each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if is_named and each.default is each.empty and each.name not in arguments:
            raise ConfigError(_missing(name, each.name))
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return arguments
    known = [parameter.name for parameter in parameters]
    if "seed" not in known:
        del arguments["seed"]
    check_names(arguments, known)
    return arguments


def _missing(learner: str, option: str) -> str:
    if option == "model":
        return (
            f"the learner {learner} needs a model: set learner.model to smollm2-135m-instruct, a "
            "folder or a hub id, or to tiny-random to try it"
        )
    return f"the learner {learner} needs the option {option}: set learner.options.{option}"


def _entry_points() -> dict[str, LearnerSpec]:
    found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    return {
        point.name: LearnerSpec(point.name, point.value, f"from {_distribution(point)}")
        for point in sorted(found, key=lambda point: point.name)
    }


def _distribution(point: importlib.metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _cannot_import(spec: LearnerSpec, error: ImportError) -> ConfigError:
    fix = "install it, or pip install 'mlrl[learners]' for the built-in learners"
    return ConfigError(f"learner {spec.name!r} needs {error.name or spec.factory!r}: {fix}")


_MAGRPO = "mlrl_learners.algorithms.magrpo"
_ACTOR_CRITIC = "mlrl_learners.algorithms.actor_critic"
_SINGLE_AGENT = "mlrl_learners.algorithms.single_agent"

BUILT_IN = (
    LearnerSpec(
        "magrpo",
        f"{_MAGRPO}:make_magrpo",
        "group-relative, no critic: advantage = return - mean of the group",
    ),
    LearnerSpec(
        "mareinforce",
        f"{_MAGRPO}:make_mareinforce",
        "magrpo without a baseline: advantage = return",
    ),
    LearnerSpec("marloo", f"{_MAGRPO}:make_marloo", "magrpo with a leave-one-out baseline"),
    LearnerSpec(
        "maremax", f"{_MAGRPO}:make_maremax", "magrpo with the group's best return as baseline"
    ),
    LearnerSpec(
        "ippo",
        f"{_ACTOR_CRITIC}:make_ippo",
        "actor-critic: clipped ratios, GAE over turns, one critic per agent",
    ),
    LearnerSpec(
        "mappo",
        f"{_ACTOR_CRITIC}:make_mappo",
        "ippo with one central critic that reads all observations",
    ),
    LearnerSpec(
        "iac",
        f"{_ACTOR_CRITIC}:make_iac",
        "actor-critic: one-step advantages, one epoch, no clipping",
    ),
    LearnerSpec(
        "maac",
        f"{_ACTOR_CRITIC}:make_maac",
        "iac with one central critic that reads all observations",
    ),
    LearnerSpec(
        "grpo",
        f"{_SINGLE_AGENT}:make_grpo",
        "one agent: magrpo divided by the group's deviation, mean over tokens, clipped ratios",
        max_agents=1,
    ),
    LearnerSpec("rloo", f"{_SINGLE_AGENT}:make_rloo", "one agent: marloo", max_agents=1),
    LearnerSpec(
        "reinforce_pp",
        f"{_SINGLE_AGENT}:make_reinforce_pp",
        "one agent: mareinforce normalised over the batch, mean over all tokens, clipped ratios",
        max_agents=1,
    ),
    LearnerSpec("ppo", f"{_SINGLE_AGENT}:make_ppo", "one agent: ippo", max_agents=1),
    LearnerSpec(
        "madpo",
        "mlrl_learners.algorithms.madpo:make_madpo",
        "preferences: pairs of joint answers with different returns",
    ),
    LearnerSpec("dpo", f"{_SINGLE_AGENT}:make_dpo", "one agent: madpo", max_agents=1),
    LearnerSpec(
        "marlhf",
        "mlrl_learners.algorithms.marlhf:make_marlhf",
        "a reward model trained on preferences, and any policy gradient trained on its scores",
    ),
    LearnerSpec(
        "sft",
        "mlrl_learners.algorithms.sft:make_sft",
        "supervised: imitate collected episodes, predict the next observation, or both",
    ),
)
"""Learners of this package; a new one is an entry here and a module in `algorithms`."""
for _spec in BUILT_IN:
    _REGISTRY.add(_spec)

"""Learners by name: built in, registered at run time, or offered by an installed package.

A factory is called by keyword with `agents`, `seed`, `model` if one was given, and the options, and
returns a `Learner`; one that takes no `seed` is given none. It is kept as `"module:function"`
and imported when its learner is made, so that naming learners costs nothing.
Packages offer theirs through the entry-point group `mlrl.learners`; a name that is
registered here wins over an entry point of the same name.
"""

import contextlib
import importlib
import importlib.metadata
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mlrl_learners.config.options import check_names
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.types import AgentID, Learner

__all__ = ["LearnerFactory", "LearnerSpec", "describe", "make", "register", "registry"]

ENTRY_POINT_GROUP = "mlrl.learners"

LearnerFactory = Callable[..., Learner]


@dataclass(frozen=True, slots=True)
class LearnerSpec:
    """How a learner is made.

    Attributes:
        name: Name under which it is registered.
        factory: `"module:function"`, or the function itself.
        summary: One line for people.
    """

    name: str
    factory: str | LearnerFactory
    summary: str = ""

    def load(self) -> LearnerFactory:
        """Import the factory.

        Raises:
            ConfigError: If it cannot be imported.
        """
        if callable(self.factory):
            return self.factory
        module, _, attribute = self.factory.partition(":")
        try:
            return cast("LearnerFactory", getattr(importlib.import_module(module), attribute))
        except ImportError as error:
            raise _cannot_import(self, error) from error
        except AttributeError as error:
            raise ConfigError(f"learner {self.name!r}: {module} has no {attribute!r}") from error


class _Registry(Mapping[str, LearnerSpec]):
    """Names to specs; entry points are read once, on first use."""

    def __init__(self) -> None:
        self._registered: dict[str, LearnerSpec] = {}
        self._offered: dict[str, LearnerSpec] | None = None

    def add(self, spec: LearnerSpec) -> None:
        self._registered[spec.name] = spec

    def _all(self) -> dict[str, LearnerSpec]:
        if self._offered is None:
            self._offered = _entry_points()
        return {**self._offered, **self._registered}

    def __getitem__(self, name: str) -> LearnerSpec:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


_REGISTRY = _Registry()
_MADE: weakref.WeakKeyDictionary[Learner, dict[str, Any]] = weakref.WeakKeyDictionary()

registry: Mapping[str, LearnerSpec] = _REGISTRY
"""Every learner that can be made, by name."""


def register(
    name: str, factory: str | LearnerFactory, *, summary: str = "", replace: bool = False
) -> None:
    """Make a learner known under a name.

    Args:
        name: What `make` and configurations call it.
        factory: `"module:function"`, imported on first use, or the function itself. See
            above for how it is called.
        summary: One line for `mlrl list`.
        replace: Whether the name may already stand for something else.

    Raises:
        ConfigError: If the factory is not of that form, or the name is taken.
    """
    if isinstance(factory, str) and not all(factory.partition(":")):
        raise ConfigError(f"factory must be 'module:function', got {factory!r}")
    taken = _REGISTRY.get(name)
    if taken is not None and taken.factory != factory and not replace:
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
    """Make a learner.

    Args:
        name: One of `registry`.
        agents: Roles of the environment it will play in.
        model: What the learner's agents start from: for the built-in ones a model's name or
            folder, or a mapping of agents to such. Left out for learners without models.
        seed: Decides everything the learner draws.
        **options: The learner's own.

    Raises:
        UnknownNameError: If there is no such learner, or it has no such option.
        ConfigError: If a value is outside its range.
    """
    if name not in registry:
        raise unknown_name("learner", name, registry)
    factory = registry[name].load()
    arguments = {**options, "agents": tuple(agents)}
    if model is not None:
        arguments["model"] = model
    learner = factory(**_fit_signature(factory, {**arguments, "seed": seed}))
    with contextlib.suppress(TypeError):  # with slots a learner may not be referred to weakly
        _MADE[learner] = {"name": name, "model": _as_json(model), "options": _as_json(options)}
    return learner


def describe(learner: Learner) -> dict[str, Any]:
    """Return the `learner` section of a configuration that makes one like it again.

    One that was not made by `make` is described by the name of its class alone.
    """
    return dict(_MADE.get(learner) or {"name": type(learner).__name__})


def _as_json(value: object) -> object:
    """Return JSON values; what is none is named by its type."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return str(value) if isinstance(value, Path) else f"a {type(value).__name__} in memory"


def _fit_signature(factory: LearnerFactory, arguments: dict[str, object]) -> dict[str, object]:
    """Turn the `TypeError` of a wrong keyword into the error for users; drop an unwanted seed."""
    parameters = inspect.signature(factory).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return arguments
    known = [parameter.name for parameter in parameters]
    if "seed" not in known:
        del arguments["seed"]
    check_names(arguments, known)
    return arguments


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
register(
    "magrpo",
    f"{_MAGRPO}:make_magrpo",
    summary="group-relative, no critic: advantage = return - mean of the group",
)
register(
    "mareinforce",
    f"{_MAGRPO}:make_mareinforce",
    summary="magrpo without a baseline: advantage = return",
)
register(
    "marloo",
    f"{_MAGRPO}:make_marloo",
    summary="magrpo with a leave-one-out baseline",
)
register(
    "maremax",
    f"{_MAGRPO}:make_maremax",
    summary="magrpo with the group's best return as baseline",
)

_ACTOR_CRITIC = "mlrl_learners.algorithms.actor_critic"
register(
    "ippo",
    f"{_ACTOR_CRITIC}:make_ippo",
    summary="actor-critic: clipped ratios, GAE over turns, one critic an agent",
)
register(
    "mappo",
    f"{_ACTOR_CRITIC}:make_mappo",
    summary="ippo with one critic that reads what all agents read",
)
register(
    "iac",
    f"{_ACTOR_CRITIC}:make_iac",
    summary="actor-critic: one-step advantages, one pass, nothing clipped",
)
register(
    "maac",
    f"{_ACTOR_CRITIC}:make_maac",
    summary="iac with one critic that reads what all agents read",
)

_SINGLE_AGENT = "mlrl_learners.algorithms.single_agent"
register(
    "grpo",
    f"{_SINGLE_AGENT}:make_grpo",
    summary="one agent: magrpo over the deviation of the group, means over tokens, clipped ratios",
)
register(
    "rloo",
    f"{_SINGLE_AGENT}:make_rloo",
    summary="one agent: marloo",
)
register(
    "reinforce_pp",
    f"{_SINGLE_AGENT}:make_reinforce_pp",
    summary="one agent: mareinforce normalised over the batch, all tokens alike, clipped ratios",
)
register(
    "ppo",
    f"{_SINGLE_AGENT}:make_ppo",
    summary="one agent: ippo",
)

register(
    "madpo",
    "mlrl_learners.algorithms.madpo:make_madpo",
    summary="preferences: pairs of joint answers of which one earned more",
)
register(
    "dpo",
    f"{_SINGLE_AGENT}:make_dpo",
    summary="one agent: madpo",
)
register(
    "marlhf",
    "mlrl_learners.algorithms.marlhf:make_marlhf",
    summary="a reward model learns from preferences, and any policy gradient from it",
)
register(
    "sft",
    "mlrl_learners.algorithms.sft:make_sft",
    summary="supervised: imitate collected episodes, predict what comes next, or both",
)

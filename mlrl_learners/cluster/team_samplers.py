"""A pool of samplers in place of the engines of a team.

Every model of the team has a key. `publish` keeps the trained weights under a version, and the team
samples from the version that was published last; `player` returns a copy of the team that samples
from any version, in another thread.
"""

import contextlib
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mlrl_learners.algorithms.policy_gradient_config import PolicyGradientConfig
from mlrl_learners.algorithms.team import Team
from mlrl_learners.cluster.blueprint import (
    Blueprint,
    PackedWeights,
    from_state,
    pack,
    to_state,
)
from mlrl_learners.cluster.ray_session import open_ray
from mlrl_learners.cluster.ray_workers import RayWorkers
from mlrl_learners.cluster.sampler_pool import SamplerPool
from mlrl_learners.cluster.sampler_worker import ModelSource
from mlrl_learners.cluster.workers import Call
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.engine import SampledTokens
from mlrl_learners.engine.jobs import SamplingJob
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy, restore
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.types import Actor, Learner

__all__ = ["TeamSamplers", "attached_samplers", "check_samplers", "open_samplers"]

VERSIONS_FOLDER = "versions"


@dataclass
class SampledVersion:
    """The version that a team samples from, and those that answered.

    Attributes:
        number: Version that is asked for.
        answered: Version of each batch since `take`.
    """

    number: int = 0
    answered: list[int] = field(default_factory=list)

    def take(self) -> list[int]:
        """Return the version of each batch, and forget them."""
        answered, self.answered = self.answered, []
        return answered


@dataclass(frozen=True)
class _ModelSampler:
    """Answers the jobs of one model of a team; see `mlrl_learners.engine.jobs.JobSampler`."""

    pool: SamplerPool
    key: str
    names: frozenset[str | None]
    is_trained: bool
    version: SampledVersion

    def covers(self, adapters: Sequence[str | None]) -> bool:
        """Return whether the processes have all of these adapters."""
        return self.names.issuperset(adapters)

    def sample(self, jobs: Sequence[SamplingJob]) -> list[list[list[SampledTokens]]]:
        """Return the answers to each prompt of each job, in order."""
        number = self.version.number if self.is_trained else None
        answers = self.pool.sample([Call(self.key, number, job) for job in jobs])
        self.version.answered += [each.version for each in answers if each.version is not None]
        return [answer.samples for answer in answers]


class TeamSamplers:
    """Samplers of a team.

    Args:
        team: The team; its models sample here until `detach`.
        pool: The processes.
        models: A policy of each model, by its key.

    Attributes:
        pool: The processes.
        current: The version that the team samples from.
    """

    def __init__(self, team: Team, pool: SamplerPool, models: Mapping[str, Policy]) -> None:
        self._team, self._models = team, models
        self.pool = pool
        self.current = SampledVersion()
        self._trained = {
            key: {
                name: policy
                for name, policy in team.policies.items()
                if policy.engine is model.engine and name in team.optimizers
            }
            for key, model in models.items()
        }
        for key, model in models.items():
            model.engine.remote = self._sampler(key, self.current)

    def publish(self, version: int) -> None:
        """Keep the current weights under a version, from which the team samples now."""
        for key, model in self._models.items():
            if self._trained[key]:
                self.pool.publish(key, version, pack(model, whole=model.base is None))
        self.current.number = version

    def player(self) -> tuple[Team, SampledVersion]:
        """Return a copy that only plays, in any thread, and the version that it samples from."""
        version = SampledVersion()
        engines = {}
        for key, model in self._models.items():
            engines[id(model.engine)] = engine = copy.copy(model.engine)
            engine.remote = self._sampler(key, version)
        return self._team.played_by(engines), version

    def save_versions(self, folder: Path, versions: Iterable[int]) -> None:
        """Write the weights of some versions, which are kept, into the folder of a checkpoint."""
        for version in versions:
            path = folder / VERSIONS_FOLDER / str(version)
            path.mkdir(parents=True)
            for key, trained in self._trained.items():
                if trained:
                    torch.save(to_state(self.pool.weights(key, version)), path / f"{key}.pt")

    def load_versions(self, folder: Path, versions: Iterable[int]) -> None:
        """Publish the versions that `save_versions` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged.
        """
        for version in versions:
            for key, trained in self._trained.items():
                if trained:
                    path = folder / VERSIONS_FOLDER / str(version) / f"{key}.pt"
                    restore(path, partial(self._publish_state, key, version))

    def _publish_state(self, key: str, version: int, state: Mapping[str, Any]) -> None:
        self.pool.publish(key, version, from_state(state))

    def detach(self) -> None:
        """Let the models of the team sample by themselves again."""
        for model in self._models.values():
            model.engine.remote = None

    def _sampler(self, key: str, version: SampledVersion) -> _ModelSampler:
        model = self._models[key]
        names: set[str | None] = {None}
        if model.base is not None:
            names |= set(model.base.layers.names)
        is_trained = bool(self._trained[key])
        return _ModelSampler(self.pool, key, frozenset(names), is_trained, version)


def check_samplers(learner: Actor, config: RayConfig, opponents: OpponentsConfig) -> None:
    """Check, before anything is started, that a learner can be sampled by Ray.

    Args:
        learner: The learner.
        config: The section `ray`, enabled.
        opponents: Opponents of the run.

    Raises:
        ConfigError: If it has no language models, its answers come from a server already,
            there are several processes, or it does not correct for weights that lag behind.
    """
    if not isinstance(learner, Team):
        raise ConfigError(
            f"engine ray samples the language models of a learner, and {type(learner).__name__} "
            "has none: use engine torch"
        )
    if world().size > 1:
        raise ConfigError(
            f"engine ray trains in one process, got {world().size}: start it without torchrun, or "
            "use engine torch"
        )
    if learner.sampler is not None:
        raise ConfigError("sampler.endpoint and engine ray both sample: leave one of them out")
    if config.lag:
        _check_lag(learner, config.lag, opponents)


@contextlib.contextmanager
def open_samplers(learner: Learner, config: RayConfig) -> Iterator[TeamSamplers]:
    """Let Ray sample for a learner, which `check_samplers` has let through, inside the block.

    Raises:
        ConfigError: If a model cannot be built elsewhere, or the cluster is too small.
        MissingPackageError: If Ray is not installed.
        SamplerError: If Ray does not start.
    """
    with open_ray(config) as ray, attached_samplers(ray, learner, config) as samplers:
        yield samplers


@contextlib.contextmanager
def attached_samplers(
    ray: Any,  # noqa: ANN401 - an optional package
    learner: Learner,
    config: RayConfig,
) -> Iterator[TeamSamplers]:
    """Let processes sample for a learner inside the block.

    Args:
        ray: The package `ray`, connected to a cluster.
        learner: A learner that `check_samplers` has let through.
        config: The section `ray`, enabled.

    Raises:
        ConfigError: If a model cannot be built elsewhere.
    """
    assert isinstance(learner, Team)  # noqa: S101 - checked
    models = _models(learner)
    sources = {key: _source(policy) for key, policy in models.items()}
    with _pool(ray, config, sources) as pool:
        samplers = TeamSamplers(learner, pool, models)
        try:
            yield samplers
        finally:
            samplers.detach()


def _check_lag(team: Team, lag: int, opponents: OpponentsConfig) -> None:
    config = team.config
    if not isinstance(config, PolicyGradientConfig):
        raise ConfigError(
            f"lag {lag} needs a loss with an importance ratio, and {type(team).__name__} has none: "
            "set lag 0"
        )
    if config.importance.correction == "none":
        raise ConfigError(
            f"lag {lag} samples from other weights than the trained ones: set "
            "importance.correction token_truncate, or another correction, got none"
        )
    if opponents.words():
        raise ConfigError(f"lag {lag} plays without opponents: leave opponents out, or set lag 0")


@contextlib.contextmanager
def _pool(
    ray: Any,  # noqa: ANN401 - an optional package
    config: RayConfig,
    sources: Mapping[str, ModelSource],
) -> Iterator[SamplerPool]:
    pool = SamplerPool(RayWorkers(ray, config, sources), config)
    try:
        yield pool
    finally:
        pool.close()


def _models(team: Team) -> dict[str, Policy]:
    """Return one policy of each model, by the key of the model."""
    by_model = {id(policy.model): policy for policy in team.policies.values()}
    return {f"model{number}": policy for number, policy in enumerate(by_model.values())}


def _source(policy: Policy) -> ModelSource:
    base: PackedWeights | None = None
    if policy.base is not None:
        base = pack(policy, whole=True)
    return ModelSource(Blueprint.of(policy), base)

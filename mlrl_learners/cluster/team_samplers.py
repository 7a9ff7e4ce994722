"""A pool of samplers in place of the engines of a team.

Every model of the team has a key. `publish` keeps the trained weights under a version, and the team
samples from the version that was published last; `player` returns a copy of the team that samples
from any version, in another thread. With `ray.rollouts`, the processes of the pool also play the
trees of training.
"""

import contextlib
import copy
from collections.abc import Iterable, Iterator, Mapping
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
from mlrl_learners.cluster.model_sampler import ModelSampler, SampledModel, SampledVersion
from mlrl_learners.cluster.ray_session import open_ray
from mlrl_learners.cluster.ray_workers import RayPlayers, RaySamplers
from mlrl_learners.cluster.rollout_worker import EnvSource
from mlrl_learners.cluster.sampler_worker import ModelSource
from mlrl_learners.cluster.team_rollouts import TeamRollouts
from mlrl_learners.cluster.worker_pool import WorkerPool
from mlrl_learners.cluster.workers import Workers
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.policies import Policy, restore
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.types import Actor, Learner

__all__ = ["TeamSamplers", "attached_samplers", "check_samplers", "open_samplers"]

VERSIONS_FOLDER = "versions"


class TeamSamplers:
    """Samplers of a team.

    Args:
        team: The team; its models sample here until `detach`.
        pool: The processes.
        models: A policy of each model, by its key.
        config: The section `ray`, with the processes that play trees.

    Attributes:
        pool: The processes.
        current: The version that the team samples from.
    """

    def __init__(
        self, team: Team, pool: WorkerPool, models: Mapping[str, Policy], config: RayConfig
    ) -> None:
        self._team, self._models, self._config = team, models, config
        self.pool = pool
        self.current = SampledVersion()
        self._sampled = sampled_models(team, models)
        self._trained = [key for key, model in self._sampled.items() if model.is_trained]
        for key, model in models.items():
            model.engine.remote = self._sampler(key, self.current)
        team.remote = self._rollouts(self.current)

    def publish(self, version: int) -> None:
        """Keep the current weights under a version, from which the team samples now."""
        for key in self._trained:
            model = self._models[key]
            self.pool.publish(key, version, pack(model, whole=model.base is None))
        self.current.number = version

    def player(self) -> tuple[Team, SampledVersion]:
        """Return a copy that only plays, in any thread, and the version that it samples from."""
        version = SampledVersion()
        engines = {}
        for key, model in self._models.items():
            engines[id(model.engine)] = engine = copy.copy(model.engine)
            engine.remote = self._sampler(key, version)
        player = self._team.played_by(engines)
        player.remote = self._rollouts(version)
        return player, version

    def save_versions(self, folder: Path, versions: Iterable[int]) -> None:
        """Write the weights of some versions, which are kept, into the folder of a checkpoint."""
        for version in versions:
            path = folder / VERSIONS_FOLDER / str(version)
            path.mkdir(parents=True)
            for key in self._trained:
                torch.save(to_state(self.pool.weights(key, version)), path / f"{key}.pt")

    def load_versions(self, folder: Path, versions: Iterable[int]) -> None:
        """Publish the versions that `save_versions` wrote.

        Raises:
            CheckpointError: If a file is missing or damaged.
        """
        for version in versions:
            for key in self._trained:
                path = folder / VERSIONS_FOLDER / str(version) / f"{key}.pt"
                restore(path, partial(self._publish_state, key, version))

    def _publish_state(self, key: str, version: int, state: Mapping[str, Any]) -> None:
        self.pool.publish(key, version, from_state(state))

    def detach(self) -> None:
        """Let the models of the team sample by themselves again."""
        for model in self._models.values():
            model.engine.remote = None
        self._team.remote = None

    def _sampler(self, key: str, version: SampledVersion) -> ModelSampler:
        return ModelSampler(self.pool, self._sampled[key], version)

    def _rollouts(self, version: SampledVersion) -> TeamRollouts | None:
        processes = self._config.rollouts
        return TeamRollouts(self.pool, self._trained, version, processes) if processes else None


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
    if config.rollouts and opponents.words():
        raise ConfigError("ray.rollouts plays without opponents: leave opponents out, or set 0")
    if config.lag:
        _check_lag(learner, config.lag, opponents)


@contextlib.contextmanager
def open_samplers(
    learner: Learner, config: RayConfig, env: EnvSource | None = None
) -> Iterator[TeamSamplers]:
    """Let Ray sample for a learner, which `check_samplers` has let through, inside the block.

    Args:
        learner: The learner.
        config: The section `ray`, enabled.
        env: The environment, which `ray.rollouts` needs.

    Raises:
        ConfigError: If a model cannot be built elsewhere, or the cluster is too small.
        MissingPackageError: If Ray is not installed.
        SamplerError: If Ray does not start.
    """
    with open_ray(config) as ray, attached_samplers(ray, learner, config, env) as samplers:
        yield samplers


@contextlib.contextmanager
def attached_samplers(
    ray: Any,  # noqa: ANN401 - an optional package
    learner: Learner,
    config: RayConfig,
    env: EnvSource | None = None,
) -> Iterator[TeamSamplers]:
    """Let processes sample for a learner inside the block.

    Args:
        ray: The package `ray`, connected to a cluster.
        learner: A learner that `check_samplers` has let through.
        config: The section `ray`, enabled.
        env: The environment, which `ray.rollouts` needs.

    Raises:
        ConfigError: If a model cannot be built elsewhere.
    """
    assert isinstance(learner, Team)  # noqa: S101 - checked
    models = _models(learner)
    sources = {key: _source(policy) for key, policy in models.items()}
    workers: Workers
    if config.rollouts and env is not None:
        sampled = sampled_models(learner, models)
        team = learner.portable({id(models[key].engine): each for key, each in sampled.items()})
        workers = RayPlayers(ray, config, sources, team, env)
    else:
        workers = RaySamplers(ray, config, sources)
    with _pool(workers, config) as pool:
        samplers = TeamSamplers(learner, pool, models, config)
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
def _pool(workers: Workers, config: RayConfig) -> Iterator[WorkerPool]:
    pool = WorkerPool(workers, config)
    try:
        yield pool
    finally:
        pool.close()


def sampled_models(team: Team, models: Mapping[str, Policy]) -> dict[str, SampledModel]:
    """Return what those that ask for a model's answers know of it, by its key."""
    found = {}
    for key, model in models.items():
        policies = [n for n, policy in team.policies.items() if policy.engine is model.engine]
        adapters = () if model.base is None else model.base.layers.names
        found[key] = SampledModel(
            key,
            frozenset({None, *adapters}),
            is_trained=any(name in team.optimizers for name in policies),
            is_on_cpu=model.device.type == "cpu",
        )
    return found


def _models(team: Team) -> dict[str, Policy]:
    """Return one policy of each model, by the key of the model."""
    by_model = {id(policy.model): policy for policy in team.policies.values()}
    return {f"model{number}": policy for number, policy in enumerate(by_model.values())}


def _source(policy: Policy) -> ModelSource:
    base: PackedWeights | None = None
    if policy.base is not None:
        base = pack(policy, whole=True)
    return ModelSource(Blueprint.of(policy), base)

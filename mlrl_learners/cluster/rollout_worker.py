"""The process that plays: groups of rollout trees, with samplers of its own.

The trainer sends the seeds of trees and gets rollouts; prompts and answers of turns travel between
this process and its samplers. It makes the environment from the options of the run.
"""

import copy
import os
import pickle
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlrl_envs.errors import InfraError
from mlrl_learners.cluster.workers import (
    Answer,
    BatchCall,
    BrokenWorkerError,
    TreesAnswer,
    TreesCall,
    Workers,
)
from mlrl_learners.errors import ConfigError

if TYPE_CHECKING:
    from mlrl_learners.algorithms.team import Team
    from mlrl_learners.cluster.model_sampler import SampledVersion
    from mlrl_learners.config.ray import RayConfig

__all__ = ["EnvSource", "RolloutWorker"]


@dataclass(frozen=True)
class EnvSource:
    """An environment as a process makes it.

    Attributes:
        location: Id for `mlrl_envs.make`, with servers if there are some.
        options: Arguments of `mlrl_envs.make`.
        fingerprint: That of the trainer's environment.
    """

    location: str
    options: Mapping[str, Any]
    fingerprint: Mapping[str, Any]

    def make(self) -> Any:  # noqa: ANN401 - any PettingZoo parallel environment
        """Return the environment.

        Raises:
            ConfigError: If it is another one than the trainer's.
        """
        import mlrl_envs

        env = mlrl_envs.make(self.location, **self.options)
        found = mlrl_envs.fingerprint(env)
        if found != self.fingerprint:
            raise ConfigError(
                f"a process of ray.rollouts made another environment {self.location!r} than the "
                f"trainer: {found}, there {self.fingerprint}: give both the same code and data"
            )
        return env


class RolloutWorker:
    """Plays groups of trees.

    Args:
        workers: Starts samplers and asks them.
        config: Number of samplers, time limits and attempts.
        team: What `Team.portable` returned, with `SampledModel` objects in place of engines.
        source: The environment.
    """

    def __init__(
        self, workers: Workers, config: "RayConfig", team: "Team", source: EnvSource
    ) -> None:
        from mlrl_learners.cluster.worker_pool import WorkerPool

        self._pool = WorkerPool(workers, config)
        self._team, self._source = team, source
        self._env: Any = None
        self._reported = 0  # samplers that were replaced
        self._lock = threading.Lock()
        self._idle: list[tuple[Team, SampledVersion]] = []

    def ready(self) -> int:
        """Return the id of the process, when it has the environment."""
        self._env = self._source.make()
        return os.getpid()

    def answer(self, call: BatchCall, weights: Mapping[str, Any]) -> Answer:
        """Return the answers to a batch, which a sampler gives."""
        if call.version is not None:
            self._pool.adopt(call.version, weights)
        self._pool.keep_from(call.oldest)
        try:
            answer: Answer = self._pool.answer([call])[0]
        finally:
            self._check_samplers()
        return answer

    def play(self, call: TreesCall, weights: Mapping[str, Any]) -> TreesAnswer:
        """Return the rollouts of some groups.

        Args:
            call: The groups.
            weights: References to the weights of its version, by model.
        """
        try:
            self._pool.adopt(call.version, weights)
            self._pool.keep_from(call.oldest)
            answer = self._play(call)
        except InfraError:
            raise
        except Exception as error:  # noqa: BLE001 - for the trainer, where it ends the run
            return TreesAnswer(error=_portable(error))
        self._check_samplers()
        return answer

    def _play(self, call: TreesCall) -> TreesAnswer:
        with self._lock:
            team, version = self._idle.pop() if self._idle else self._player()
        version.number = call.version
        try:
            return self._play_as(team, version, call)
        finally:
            with self._lock:
                self._idle.append((team, version))

    def _play_as(self, team: "Team", version: "SampledVersion", call: TreesCall) -> TreesAnswer:
        from mlrl_learners.cluster.packed_rollouts import packed_groups
        from mlrl_learners.play.groups import Tree
        from mlrl_learners.play.trees import play_groups

        players = [team.player(group.call_seeds, group.min_batches) for group in call.groups]
        trees = [
            [
                Tree(copy.deepcopy(self._env), options, seed, {})
                for options, seed in zip(group.options, group.seeds, strict=True)
            ]
            for group in call.groups
        ]
        found = play_groups(list(zip(players, trees, strict=True)), call.config, call.env_id)
        with self._lock:
            replaced, self._reported = self._pool.replaced - self._reported, self._pool.replaced
        calls = [player.call_seeds.calls for player in players]
        return TreesAnswer(packed_groups(found), calls, version.take(), replaced)

    def _check_samplers(self) -> None:
        """Raise an error if no sampler of this process can be started any more."""
        if self._pool.broken:
            raise BrokenWorkerError(self._pool.broken)

    def _player(self) -> "tuple[Team, SampledVersion]":
        """Return a team that samples from a version of its own, for one thread."""
        from mlrl_learners.cluster.model_sampler import ModelSampler, SampledVersion
        from mlrl_learners.engine.remote_engine import RemoteEngine

        version = SampledVersion()
        models: Any = {id(each.engine): each.engine for each in self._team.policies.values()}
        engines = {
            key: RemoteEngine(ModelSampler(self._pool, model, version), model.is_on_cpu)
            for key, model in models.items()
        }
        return self._team.played_by(engines), version


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent to another process, with its traceback as a note."""
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note("in a process of ray.rollouts:\n" + traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    except Exception:  # noqa: BLE001 - whatever its class does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

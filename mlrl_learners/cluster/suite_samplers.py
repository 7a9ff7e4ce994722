"""Samplers for the learners that play a suite, one after the other."""

import contextlib
from typing import Any

from mlrl_learners.cluster.ray_session import open_ray
from mlrl_learners.cluster.team_samplers import attached_samplers, check_samplers
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.types import Actor

__all__ = ["SuiteSamplers"]


class SuiteSamplers(contextlib.AbstractContextManager["SuiteSamplers"]):
    """Lets processes that Ray starts sample for each actor, until the next one comes.

    Args:
        config: The section `ray`, enabled; Ray starts with the first actor.

    Raises:
        ConfigError: If processes are to play the rollouts of training.
    """

    def __init__(self, config: RayConfig) -> None:
        if config.rollouts:
            raise ConfigError(f"ray.rollouts is of training, got {config.rollouts}: leave it out")
        self._config = config
        self._session, self._pool = contextlib.ExitStack(), contextlib.ExitStack()
        self._ray: Any = None

    def attach(self, actor: Actor) -> None:
        """Sample for an actor, and no longer for the one before it.

        Raises:
            ConfigError: If it has no language models, or they cannot be built elsewhere.
            MissingPackageError: If Ray is not installed.
            SamplerError: If Ray does not start.
        """
        check_samplers(actor, self._config, OpponentsConfig())
        self._pool.close()
        if self._ray is None:
            self._ray = self._session.enter_context(open_ray(self._config))
        found = attached_samplers(self._ray, actor, self._config)  # type: ignore[arg-type]  # checked
        self._pool.enter_context(found).publish(0)

    def __exit__(self, *error: object) -> None:
        """End the processes, and Ray if it was started here."""
        try:
            self._pool.close()
        finally:
            self._session.close()

"""The source of a run's rollouts, with the processes that sample for it."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import mlrl_envs
from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.training.lagged_rollouts import LaggedRollouts
from mlrl_learners.training.rollout_source import RolloutSource
from mlrl_learners.training.train_plan import TrainPlan
from mlrl_learners.types import Learner

if TYPE_CHECKING:
    from mlrl_learners.cluster.team_samplers import TeamSamplers

__all__ = ["open_source"]


@contextlib.contextmanager
def open_source(
    plan: TrainPlan,
    learner: Learner,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    draw: OpponentDraw,
) -> Iterator[RolloutSource]:
    """Yield the source of a run's rollouts, with the processes that sample inside the block.

    Raises:
        ConfigError: If the learner cannot be sampled as the plan says.
        MissingPackageError: If Ray is asked for and not installed.
        SamplerError: If Ray does not start.
    """
    if not plan.ray.enabled:
        yield RolloutSource(plan, learner, env, draw, None)
        return
    from mlrl_learners.cluster.rollout_worker import EnvSource
    from mlrl_learners.cluster.team_samplers import open_samplers

    made = EnvSource(plan.location, plan.env_options, mlrl_envs.fingerprint(env))
    with open_samplers(learner, plan.ray, made) as samplers:
        source = _source(plan, learner, env, draw, samplers)
        try:
            yield source
        finally:
            source.close()


def _source(
    plan: TrainPlan,
    learner: Learner,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    draw: OpponentDraw,
    samplers: "TeamSamplers",
) -> RolloutSource:
    kind = LaggedRollouts if plan.ray.lag else RolloutSource
    return kind(plan, learner, env, draw, samplers)

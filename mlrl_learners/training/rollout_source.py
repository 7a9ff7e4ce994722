"""Source of the rollouts of an iteration: the current weights, or weights that lag behind.

`RolloutSource` collects with the current weights, which samplers of a cluster get after every
update. `mlrl_learners.training.lagged_rollouts` collects ahead of the updates.
"""

import contextlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.training.collection import Collected, collect_tasks
from mlrl_learners.training.train_plan import TrainPlan
from mlrl_learners.types import Learner

if TYPE_CHECKING:
    from mlrl_learners.cluster.team_samplers import TeamSamplers

__all__ = ["RolloutSource"]


class RolloutSource:
    """Collects the rollouts of each iteration from the weights after the update before it.

    Args:
        plan: Arguments of the run.
        learner: The learner.
        env: Environment, which is copied.
        draw: Draw of opponents.
        samplers: Processes that sample for the learner; None if it samples by itself.
    """

    def __init__(
        self,
        plan: TrainPlan,
        learner: Learner,
        env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
        draw: OpponentDraw,
        samplers: "TeamSamplers | None",
    ) -> None:
        self.plan, self.learner, self.env, self.draw = plan, learner, env, draw
        self.samplers = samplers

    def begin(self, done: int, checkpoint: Path | None) -> None:
        """Start after so many iterations.

        Args:
            done: Completed iterations.
            checkpoint: Their checkpoint; None for a new run.
        """
        del checkpoint
        self.publish(done)

    def publish(self, done: int) -> None:
        """Take the weights of the learner after so many iterations."""
        if self.samplers is not None:
            self.samplers.publish(done)
            self.samplers.pool.keep_from(done)

    def collect(self, iteration: int) -> Collected:
        """Return the rollouts of an iteration."""
        return collect_tasks(self.plan, self.learner, self.env, self.draw, iteration)

    def pause(self) -> AbstractContextManager[object]:
        """Return a context in which nothing else plays."""
        return contextlib.nullcontext()

    def metrics(self, iteration: int) -> dict[str, float]:
        """Return metrics of the samplers since the last call, if there are any."""
        if self.samplers is None:
            return {}
        return self.ages(iteration, self.samplers.current.take())

    def ages(self, iteration: int, versions: list[int]) -> dict[str, float]:
        """Return the age of the weights that sampled, in updates, and the replaced processes."""
        pool = self.samplers.pool if self.samplers is not None else None
        found = {"sampler/policy_age": float(iteration - 1 - min(versions))} if versions else {}
        return found | ({} if pool is None else {"sampler/replaced": float(pool.replaced)})

    def save(self, folder: Path) -> None:
        """Write what a checkpoint needs beside the learner: nothing."""

    def close(self) -> None:
        """End all collecting."""

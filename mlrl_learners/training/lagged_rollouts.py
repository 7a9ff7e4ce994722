"""Rollouts that are collected ahead of the updates: iteration j by the weights of update j - 1 - K.

A thread collects in the order of the iterations and drops nothing. It waits for the version that an
iteration is due, so that it is ahead by K + 1 iterations at most, and the run is the same however
long either side takes. All draws follow from the seed and the iteration; a checkpoint keeps the
versions that later iterations are due, so that a resumed run collects the same.

Source: one-step off-policy training (arXiv 2410.18252).
"""

import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlrl_learners.seeding import derive_seed
from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.training.collection import Collected, collect_tasks
from mlrl_learners.training.rollout_source import RolloutSource
from mlrl_learners.training.train_plan import TrainPlan
from mlrl_learners.types import Learner

if TYPE_CHECKING:
    from mlrl_learners.cluster.team_samplers import TeamSamplers

__all__ = ["LaggedRollouts"]

SEED_PART = 7_919  # of the seeds of sampling, which are others than those of tasks
LOOK_SECONDS = 1.0  # between two looks whether the run has ended


class LaggedRollouts(RolloutSource):
    """Collects rollouts in a thread, ahead of the updates.

    Args:
        plan: Arguments of the run, with the lag.
        learner: The learner.
        env: Environment, which is copied.
        draw: Draw of opponents, which are none.
        samplers: Processes that sample for the learner.
    """

    def __init__(
        self,
        plan: TrainPlan,
        learner: Learner,
        env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
        draw: OpponentDraw,
        samplers: "TeamSamplers",
    ) -> None:
        super().__init__(plan, learner, env, draw, samplers)
        self._samplers = samplers
        self._player, self._version = samplers.player()
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._found: dict[int, tuple[Collected, list[int], float]] = {}
        self._error: BaseException | None = None
        self._published, self._is_closed = -1, False
        self._playing = threading.Lock()
        self._metrics: dict[str, float] = {}

    def begin(self, done: int, checkpoint: Path | None) -> None:
        """Start to collect after so many iterations, with the versions of their checkpoint."""
        if checkpoint is not None:
            self._samplers.load_versions(checkpoint, range(self._due(done + 1), done))
        self.publish(done)
        self._thread = threading.Thread(target=self._run, args=(done + 1,), daemon=True)
        self._thread.start()

    def publish(self, done: int) -> None:
        """Take the weights of the learner after so many iterations."""
        self._samplers.publish(done)
        with self._changed:
            self._published = done
            self._changed.notify_all()

    def collect(self, iteration: int) -> Collected:
        """Return the rollouts of an iteration, and drop weights that no other is due."""
        started = time.perf_counter()
        with self._changed:
            while iteration not in self._found and self._error is None:
                self._changed.wait()
            if iteration not in self._found and self._error is not None:
                raise self._error
            found, versions, waited = self._found.pop(iteration)
        self._samplers.pool.keep_from(self._due(iteration + 1))
        self._metrics = {
            **self.ages(iteration, versions),
            "sampler/rollouts_wait_seconds": time.perf_counter() - started,
            "sampler/weights_wait_seconds": waited,
        }
        return found

    def pause(self) -> AbstractContextManager[object]:
        """Return a context that waits for the iteration that is collected, and holds the next."""
        return self._playing

    def metrics(self, iteration: int) -> dict[str, float]:
        """Return the metrics of the samplers in an iteration, which has been collected."""
        del iteration
        self._samplers.current.take()  # of evaluations
        return self._metrics

    def save(self, folder: Path) -> None:
        """Write the versions into a checkpoint that later iterations are due, but for the last."""
        last = self._published
        self._samplers.save_versions(folder, range(self._due(last + 1), last))

    def close(self) -> None:
        """End all collecting."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._samplers.pool.close()  # ends what the thread waits for
        if self._thread is not None:
            self._thread.join()

    def _due(self, iteration: int) -> int:
        """Return the version that samples an iteration."""
        return max(0, iteration - 1 - self.plan.ray.lag)

    def _run(self, first: int) -> None:
        try:
            for iteration in range(first, self.plan.iterations + 1):
                waited = self._wait_for_weights(self._due(iteration))
                if self._is_closed:
                    return
                with self._playing:
                    found = self._collect(iteration)
                with self._changed:
                    self._found[iteration] = (found, self._version.take(), waited)
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _wait_for_weights(self, version: int) -> float:
        """Return the seconds until a version was published, or the run was closed."""
        started = time.perf_counter()
        with self._changed:
            while self._published < version and not self._is_closed:
                self._changed.wait(LOOK_SECONDS)
        return time.perf_counter() - started

    def _collect(self, iteration: int) -> Collected:
        self._version.number = self._due(iteration)
        with self._player.sampling_seed(derive_seed(self.plan.seed, iteration, SEED_PART)):
            player = self._player  # a team without `update`, which collecting does not call
            return collect_tasks(self.plan, player, self.env, self.draw, iteration)  # type: ignore[arg-type]

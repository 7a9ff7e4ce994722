"""Rollouts that are collected ahead of the updates: iteration j by the weights of update j - 1 - K.

An iteration is collected as soon as the version that it is due is published, so that up to K + 1
iterations are collected at the same time, each in a thread of its own; nothing is dropped. All
draws follow from the seed and the iteration, so that the run is the same however long either side
takes. A checkpoint keeps the versions that later iterations are due, so that a resumed run collects
the same.

Source: one-step off-policy training (arXiv 2410.18252).
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlrl_learners.seeding import derive_seed
from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.training.collection import Collected, collect_tasks
from mlrl_learners.training.rollout_source import RolloutSource
from mlrl_learners.training.train_plan import TrainPlan
from mlrl_learners.types import Learner

if TYPE_CHECKING:
    from mlrl_learners.algorithms.team import Team
    from mlrl_learners.cluster.model_sampler import SampledVersion
    from mlrl_learners.cluster.team_samplers import TeamSamplers

__all__ = ["LaggedRollouts"]

SEED_PART = 7_919  # of the seeds of sampling, which are others than those of tasks
LOOK_SECONDS = 1.0  # between two looks whether the run has ended


class LaggedRollouts(RolloutSource):
    """Collects rollouts in threads, ahead of the updates.

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
        self._players = [_Player(*samplers.player()) for _ in range(plan.ray.lag + 1)]
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._found: dict[int, tuple[Collected, list[int], float]] = {}
        self._error: BaseException | None = None
        self._published, self._is_closed = -1, False
        self._metrics: dict[str, float] = {}

    def begin(self, done: int, checkpoint: Path | None) -> None:
        """Start to collect after so many iterations, with the versions of their checkpoint."""
        if checkpoint is not None:
            self._samplers.load_versions(checkpoint, range(self._due(done + 1), done))
        self.publish(done)
        for number, player in enumerate(self._players, start=1):
            thread = threading.Thread(target=self._run, args=(player, done + number), daemon=True)
            self._threads.append(thread)
            thread.start()

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

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Wait for the iterations that are being collected, and hold the next inside the block."""
        with contextlib.ExitStack() as stack:
            for player in self._players:
                stack.enter_context(player.plays)
            yield

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
        self._samplers.pool.close()  # ends what the threads wait for
        for thread in self._threads:
            thread.join()

    def _due(self, iteration: int) -> int:
        """Return the version that samples an iteration."""
        return max(0, iteration - 1 - self.plan.ray.lag)

    def _run(self, player: "_Player", first: int) -> None:
        """Collect every (K + 1)-th iteration from the first on."""
        try:
            for iteration in range(first, self.plan.iterations + 1, len(self._players)):
                waited = self._wait_for_weights(self._due(iteration))
                if self._is_closed:
                    return
                with player.plays:
                    found = self._collect(player, iteration)
                with self._changed:
                    self._found[iteration] = (found, player.version.take(), waited)
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            with self._changed:
                self._error = self._error or error
                self._changed.notify_all()

    def _wait_for_weights(self, version: int) -> float:
        """Return the seconds until a version was published, or the run was closed."""
        started = time.perf_counter()
        with self._changed:
            while self._published < version and not self._is_closed:
                self._changed.wait(LOOK_SECONDS)
        return time.perf_counter() - started

    def _collect(self, player: "_Player", iteration: int) -> Collected:
        player.version.number = self._due(iteration)
        team = player.team  # without `update`, which collecting does not call
        with team.sampling_seed(derive_seed(self.plan.seed, iteration, SEED_PART)):
            return collect_tasks(self.plan, team, self.env, self.draw, iteration)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Player:
    """What collects in one thread.

    Attributes:
        team: Copy of the team that only plays.
        version: The version that it samples from.
        plays: Held while it collects.
    """

    team: "Team"
    version: "SampledVersion"
    plays: threading.Lock = field(default_factory=threading.Lock)

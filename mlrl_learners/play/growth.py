"""Growth of groups of rollout trees, each as soon as its own answers and steps are there.

While a group waits for its answers, those of others are sampled, or their joint actions played: in
the thread of the caller, for all groups that have their answers, as one batch; or for each group in
a thread, if the environments have `parallel_steps`, as those of servers do. A batch waits for other
groups as long as the last one took, so that slow steps are not made one by one.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from random import Random
from typing import Any

from mlrl_envs.errors import InfraError
from mlrl_learners.play.branches import Branch, grow
from mlrl_learners.play.levels import answer_level, step_level
from mlrl_learners.play.steps import LOCAL_STEPS
from mlrl_learners.selfplay.seats import Seats
from mlrl_learners.types import Actor, RolloutConfig

__all__ = ["Group", "grow_groups"]


@dataclass(slots=True)
class Group:
    """Trees that wait for one another."""

    player: Actor
    level: list[Branch]


class _SameThread(Executor):
    """Calls functions at once, and raises their errors at once."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - of Executor
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def grow_groups(
    groups: Sequence[Group],
    config: RolloutConfig,
    seats: Sequence[Seats],
    seeds: Sequence[int],
    *,
    in_threads: bool,
) -> dict[int, InfraError]:
    """Grow trees below their roots.

    Args:
        groups: Their trees, before the first turn.
        config: Samples per node, joint mode and branching.
        seats: Opponents in each tree.
        seeds: Seed of each tree, from which a chain draws its branches.
        in_threads: Whether environments may be stepped in several threads at the same time.

    Returns:
        Error of each tree whose infrastructure failed.
    """
    parallel = min(getattr(each.player, "parallel_calls", 1) for each in groups)
    with (
        _executor(groups, parallel) as asking,
        _executor(groups, len(groups) if in_threads else 0) as stepping,
    ):
        growth = _Growth(config, seats, seeds, asking, stepping if in_threads else None)
        for group in groups:
            growth.ask(group)
        growth.run()
    return growth.errors


class _Growth:
    """Trees while they grow.

    Args:
        config: Samples per node, joint mode and branching.
        seats: Opponents in each tree.
        seeds: Seed of each tree.
        asking: Asks the players.
        stepping: Steps the environments of a group; None steps those of all groups that have
            their answers in the thread of the caller.

    Attributes:
        errors: Error of each tree whose infrastructure failed.
    """

    def __init__(
        self,
        config: RolloutConfig,
        seats: Sequence[Seats],
        seeds: Sequence[int],
        asking: Executor,
        stepping: Executor | None,
    ) -> None:
        self.errors: dict[int, InfraError] = {}
        self._config, self._asking, self._stepping = config, asking, stepping
        self._seats = seats
        self._draws = [Random(seed) for seed in seeds]  # noqa: S311 - reproducible on purpose
        self._asked: dict[Future[dict[int, InfraError]], Group] = {}
        self._stepped: dict[Future[dict[int, InfraError]], Group] = {}
        self._step_seconds = 0.0  # of the last step in the thread of the caller

    def ask(self, group: Group) -> None:
        """Ask the player of a group about its level, unless its trees have ended."""
        if group.level:
            future = self._asking.submit(
                answer_level, group.level, group.player, self._config, self._seats
            )
            self._asked[future] = group

    def run(self) -> None:
        """Go on until no tree grows any more."""
        while self._asked or self._stepped:
            done = wait([*self._asked, *self._stepped], return_when=FIRST_COMPLETED).done
            if self._stepping is None:  # groups that come during a step would need another one
                done = wait(self._asked, self._step_seconds).done
            for future in done:
                self.errors |= future.result()
            answered = [self._asked.pop(each) for each in done if each in self._asked]
            stepped = [self._stepped.pop(each) for each in done if each in self._stepped]
            if self._stepping is None:
                with LOCAL_STEPS:
                    started = time.monotonic()
                    self.errors |= step_level(self._alive(answered))
                    stepped, self._step_seconds = answered, time.monotonic() - started
            else:
                for group in answered:
                    future = self._stepping.submit(step_level, self._alive([group]))
                    self._stepped[future] = group
            for group in stepped:
                group.level = [
                    child for branch in self._alive([group]) for child in self._grown(branch)
                ]
                self.ask(group)

    def _alive(self, groups: Sequence[Group]) -> list[Branch]:
        found = [branch for group in groups for branch in group.level]
        return [branch for branch in found if branch.tree not in self.errors]

    def _grown(self, branch: Branch) -> list[Branch]:
        tree = branch.tree
        return grow(branch, self._config, self._draws[tree], self._seats[tree])


@contextlib.contextmanager
def _executor(groups: Sequence[Group], threads: int) -> Iterator[Executor]:
    """Yield what calls functions for groups; after an error it begins no other call."""
    if len(groups) == 1 or not threads:
        yield _SameThread()
        return
    with ThreadPoolExecutor(min(threads, len(groups)), "mlrl-trees") as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise

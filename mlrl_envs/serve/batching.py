"""Micro-batches: steps of all clients that wait are played together, in one thread.

The event loop collects steps; a thread of its own plays them, so that health checks are answered
while programs run. Steps that arrive during a batch form the next one. A step that arrives alone is
played at once if those before it were quick: a change of threads would take longer.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from mlrl_envs.errors import MlrlError
from mlrl_envs.serve.places import Place
from mlrl_envs.serve.results import played_message
from mlrl_envs.shell.stepping import step_many
from mlrl_envs.types import AgentID

__all__ = ["MicroBatcher", "Played", "Step"]

T = TypeVar("T")
Played = tuple[Any, Any]
"""The environment after a step, and the message about it or the error."""


@dataclass(frozen=True, slots=True)
class Step:
    """A joint action to be played.

    Attributes:
        place: The kind of environment.
        env: The environment; a copy of it is stepped if it can be copied.
        actions: The joint action.
    """

    place: Place
    env: Any
    actions: Mapping[AgentID, str]


class MicroBatcher:
    """Queue of steps, played in batches.

    Args:
        max_items: Most steps of a batch.
        wait_seconds: How long a batch waits for steps of other calls.
    """

    def __init__(self, max_items: int = 256, wait_seconds: float = 0.002) -> None:
        self.max_items, self.wait_seconds = max_items, wait_seconds
        self.batches = self.steps = 0
        self.load = 0
        """Steps that wait or are being played."""
        self.callers = 0
        """Calls that are being answered; a batch waits for more steps only if there are several."""
        self._thread = ThreadPoolExecutor(1, "mlrl-serve")
        self._works = threading.Lock()  # environments share families, which one thread uses
        self._queue: list[tuple[Step, asyncio.Future[Played]]] = []
        self._runner: asyncio.Task[None] | None = None

    def submit(self, step: Step) -> "asyncio.Future[Played]":
        """Queue a step; the future is done when its batch is."""
        future: asyncio.Future[Played] = asyncio.get_running_loop().create_future()
        self._queue.append((step, future))
        self.load += 1
        if self._runner is None:
            self._runner = asyncio.ensure_future(self._run())
        return future

    def play_now(self, step: Step) -> Played | None:
        """Play a step in this thread, or return None if it should be queued.

        The environment's last steps were quick, and nothing else is being done.
        """
        is_alone = self.callers <= 1 and not self.load
        if not (is_alone and step.place.pace.is_quick and self._works.acquire(blocking=False)):
            return None
        try:
            (played,) = play([step])
        finally:
            self._works.release()
        self.batches, self.steps = self.batches + 1, self.steps + 1
        return played

    async def call(self, work: Callable[[], T]) -> T:
        """Run other work on environments in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)

    def _work(self, work: Callable[[], T]) -> T:
        with self._works:
            return work()

    def close(self) -> None:
        """End the thread after its batch."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        try:
            while self._queue:
                if self.callers > 1 and len(self._queue) < self.max_items:
                    await asyncio.sleep(self.wait_seconds)
                batch, self._queue = self._queue[: self.max_items], self._queue[self.max_items :]
                steps = [step for step, _ in batch]
                try:
                    played = await self.call(lambda steps=steps: play(steps))  # type: ignore[misc]
                except Exception as error:  # noqa: BLE001  the queue must go on
                    played = [(None, error)] * len(batch)
                self.batches, self.steps = self.batches + 1, self.steps + len(batch)
                self.load -= len(batch)
                for (_, future), result in zip(batch, played, strict=True):
                    if not future.done():
                        future.set_result(result)
        finally:
            self._runner = None


def play(steps: Sequence[Step]) -> list[Played]:
    """Play steps; the environments that they start from stay as they are, if they can be copied."""
    started = time.perf_counter()
    forks = [number for number, step in enumerate(steps) if step.place.forkable]
    played = dict(zip(forks, _play_forks([steps[number] for number in forks]), strict=True))
    for number, step in enumerate(steps):
        if number not in played:  # it cannot be tried twice
            played[number] = _alone(step)
    seconds = (time.perf_counter() - started) / max(1, len(steps))
    for step in steps:
        step.place.pace.note(seconds)
    return [played[number] for number in range(len(steps))]


def _play_forks(steps: Sequence[Step]) -> list[Played]:
    envs = [step.place.fork(step.env) for step in steps]
    try:
        results = step_many(envs, [step.actions for step in steps], errors="return")
    except Exception:  # noqa: BLE001  the code of an environment; find out which one
        return [_alone(step) for step in steps]
    return [_answered(env, result) for env, result in zip(envs, results, strict=True)]


def _alone(step: Step) -> Played:
    env = step.place.fork(step.env) if step.place.forkable else step.env
    try:
        return _answered(env, env.step(step.actions))
    except Exception as error:  # noqa: BLE001  the code of an environment; the service logs it
        return env, error


def _answered(env: Any, result: Any) -> Played:  # noqa: ANN401  any environment; result or error
    if isinstance(result, MlrlError):
        return env, result
    try:
        return env, played_message(env, result)
    except MlrlError as error:
        return env, error

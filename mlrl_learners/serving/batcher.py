"""The thread of a policy server that samples: waiting requests in batches, and new weights.

Requests are sampled in the order of their arrival, so that those before a reload are answered by
the old weights, and those after it by the new ones. A batch runs to its end before the next one.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mlrl_learners.serving.answers import Answer, Job, batch_key, sample_batch
from mlrl_learners.serving.models import ServedModels

__all__ = ["Batcher"]

ResultT = TypeVar("ResultT")
Work = tuple[Job | Path | None, Callable[[object], None]]


class Batcher:
    """Samples answers in one thread of its own.

    Args:
        models: The models; used by the thread alone from now on, except their names.
        max_rows: Most answers that are decoded at once.
        batch_seconds: How long the first request of a batch waits for others.

    Attributes:
        models: The models.
        in_flight: Number of answers that wait or are being sampled.
        num_batches: Number of calls of the engine.
    """

    def __init__(self, models: ServedModels, *, max_rows: int, batch_seconds: float) -> None:
        self.models = models
        self.in_flight = 0
        self.num_batches = 0
        self._max_rows, self._batch_seconds = max_rows, batch_seconds
        self._waiting: queue.Queue[Work] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="sampling", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether requests are answered."""
        return self._thread.is_alive()

    def submit(self, job: Job) -> "asyncio.Future[list[Answer]]":
        """Return the future answers of a job, whose version is set by then.

        The job is in flight until the future is done; cancelling it frees its place.
        """
        count = job.request.num_answers
        self.in_flight += count
        future: asyncio.Future[list[Answer]] = self._do(job)

        def leave(_: object) -> None:
            job.cancelled.set()
            self.in_flight -= count

        future.add_done_callback(leave)
        return future

    async def reload(self, path: Path) -> int:
        """Read other weights after all requests that wait; return their version.

        Raises:
            CheckpointError: If they cannot be read; the old ones are kept.
        """
        future: asyncio.Future[int] = self._do(path)
        return await future

    def close(self) -> None:
        """End the thread after what waits."""
        self._waiting.put((None, lambda _: None))
        self._thread.join()

    def _do(self, work: Job | Path) -> "asyncio.Future[Any]":
        """Hand work to the thread; return its future result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(result: object) -> None:
            if future.done():  # nobody waits any more
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        def report(result: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result)

        self._waiting.put((work, report))
        return future

    def _run(self) -> None:
        held: Work | None = None
        while True:
            work, report = held or self._waiting.get()
            held = None
            if work is None:
                return
            if isinstance(work, Path):
                report(_outcome(partial(self._reload, work)))
                continue
            batch, held = self._collect((work, report))
            self._answer(batch)

    def _collect(self, first: Work) -> tuple[list[Work], Work | None]:
        """Return works to sample together, and the one after them if it is no job."""
        batch, num_rows = [first], 0
        deadline = time.monotonic() + self._batch_seconds
        while True:
            job = batch[-1][0]
            assert isinstance(job, Job)  # noqa: S101  for the type checker
            num_rows += job.request.num_answers
            left = deadline - time.monotonic()
            if num_rows >= self._max_rows:
                return batch, None
            try:
                following = (
                    self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
                )
            except queue.Empty:
                return batch, None
            if not isinstance(following[0], Job):
                return batch, following
            batch.append(following)

    def _answer(self, batch: list[Work]) -> None:
        """Sample the jobs of a batch, those that can be sampled together in one call."""
        groups: dict[object, list[tuple[Job, Callable[[object], None]]]] = {}
        for job, report in batch:
            if isinstance(job, Job) and not job.cancelled.is_set():
                job.version = self.models.version
                groups.setdefault(batch_key(job), []).append((job, report))
        for group in groups.values():
            self.num_batches += 1
            jobs = [job for job, _ in group]
            found = _outcome(partial(sample_batch, jobs, self._max_rows))
            for number, (_, report) in enumerate(group):
                report(found if isinstance(found, Exception) else found[number])

    def _reload(self, path: Path) -> int:
        self.models.reload(path)
        return self.models.version


def _outcome(work: Callable[[], ResultT]) -> ResultT | Exception:
    """Return the result of some work, or its error, which must not end the thread."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  raised again where the result is awaited
        return error

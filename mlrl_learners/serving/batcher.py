"""Sampling thread of a policy server: batches queued requests and loads new weights.

Work is processed in the order of arrival, so that requests before a reload are answered by the old
weights and requests after it by the new ones. A batch is completed before the next one starts.
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
    """Samples answers in a background thread.

    Args:
        models: The models. Other threads may only look up names and the version from now on.
        max_rows: Maximum number of sequences decoded at once.
        batch_seconds: Maximum time that the first request of a batch waits for more requests.

    Attributes:
        models: The models.
        in_flight: Number of answers that are queued or being sampled.
        num_batches: Number of engine calls so far.
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
        """Whether the thread is running."""
        return self._thread.is_alive()

    def submit(self, job: Job) -> "asyncio.Future[list[Answer]]":
        """Queue a job, and return a future of its answers.

        `job.version` is set when the future is done. The job counts as in flight until then;
        cancelling the future releases its place.
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
        """Load other weights after all queued requests are answered, and return their version.

        Raises:
            CheckpointError: If the weights cannot be read; the current ones are kept.
        """
        future: asyncio.Future[int] = self._do(path)
        return await future

    def close(self) -> None:
        """Complete the queued work and stop the thread."""
        self._waiting.put((None, lambda _: None))
        self._thread.join()

    def _do(self, work: Job | Path) -> "asyncio.Future[Any]":
        """Queue work for the thread, and return a future of its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(result: object) -> None:
            if future.done():  # cancelled
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
        """Return work to sample in one batch, and the item after it if that is not a job."""
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
        """Sample the jobs of a batch, with one engine call per `batch_key`."""
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
    """Return the result of a call, or its exception, which must not end the thread."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  raised again where the result is awaited
        return error

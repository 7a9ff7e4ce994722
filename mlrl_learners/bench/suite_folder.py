"""The folder of a benchmark run: episodes and failures, which one process at a time writes.

`episodes.jsonl` has one line per episode, `failures.jsonl` one line per attempt that infrastructure
broke.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from mlrl_learners.bench.plan import Unit
from mlrl_learners.errors import NoReferenceError, RunDirError
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.runs.files import CONFIG_FILE, EPISODES_FILE, FAILURES_FILE
from mlrl_learners.runs.labels import attempt_record, key_of, suite_labels
from mlrl_learners.runs.lock import hold_folder
from mlrl_learners.runs.records import episode_record
from mlrl_learners.runs.stored import UNREADABLE, StoredFailure, decode_failure
from mlrl_learners.types import Episode, FailedEpisode

__all__ = ["SuiteFolder"]

NO_REFERENCE = NoReferenceError.__name__


class SuiteFolder:
    """Records of a run's folder, by the key of their unit; a context that ends with its lock.

    One process at a time writes into a folder: it is locked from `open` to the end of the context.

    Args:
        path: The folder; `open` makes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.episodes: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, StoredFailure] = {}
        self._lock: IO[str] | None = None

    def __enter__(self) -> "SuiteFolder":
        """Return the folder, which is not opened yet."""
        return self

    def __exit__(self, *error: object) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.close()

    @property
    def is_new(self) -> bool:
        """Whether no run has written into the folder."""
        return not (self.path / EPISODES_FILE).exists()

    def open(self) -> None:
        """Lock the folder and read its records, unless that was done before.

        Raises:
            RunDirError: If another run holds the folder, it holds something else than episodes of
                suites, or it cannot be written.
        """
        if self._lock is not None:
            return
        if (self.path / CONFIG_FILE).exists():
            raise RunDirError(
                f"{str(self.path)!r} holds a training run: it has {CONFIG_FILE}; choose another "
                "folder"
            )
        self._lock = hold_folder(self.path)
        self._episodes = JsonlFile(self.path / EPISODES_FILE)
        self._failures = JsonlFile(self.path / FAILURES_FILE)
        try:
            for record in self._episodes.records():
                self.episodes.setdefault(key_of(record), record)
            for record in self._failures.records():
                self.failures[key_of(record)] = decode_failure(record)
        except UNREADABLE as error:
            raise RunDirError(
                f"{str(self.path)!r} has a line that is not of a suite: {error!r}; choose another "
                "folder"
            ) from error

    def add(self, unit: Unit, outcome: Episode | FailedEpisode, **labels: object) -> None:
        """Write an outcome, unless its episode is already in the folder."""
        if unit.key in self.episodes:
            return
        named = suite_labels(
            unit.key,
            unit.entry,
            unit.suite_seed,
            task_index=unit.job.options.get("task_index"),
            **labels,
        )
        if isinstance(outcome, Episode):
            self.keep(episode_record(outcome, **named))
            return
        record = attempt_record(outcome, self.tries(unit) + 1, **named)
        self._failures.append(record)
        self.failures[unit.key] = decode_failure(record)

    def keep(self, record: dict[str, Any]) -> None:
        """Write the record of an episode."""
        self._episodes.append(record)
        self.episodes[key_of(record)] = record

    def tries(self, unit: Unit) -> int:
        """Return how often a unit has failed."""
        failure = self.failures.get(unit.key)
        return 0 if failure is None else failure.tries

    def is_left_out(self, unit: Unit) -> bool:
        """Return whether a unit failed because its task has no reference."""
        failure = self.failures.get(unit.key)
        return failure is not None and failure.error == NO_REFERENCE

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that are neither played nor left out."""
        return [u for u in units if u.key not in self.episodes and not self.is_left_out(u)]

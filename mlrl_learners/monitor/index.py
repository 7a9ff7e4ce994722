"""In-memory index of the episodes of a file: positions and figures, without texts.

An episode takes about fifty bytes of memory. The index follows the file while it is written and is
rebuilt when a resumed run has rewritten it. Texts are searched in the file itself, one page of hits
at a time.
"""

import re
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlrl_learners.monitor.lines import Finder, LineReader
from mlrl_learners.monitor.query import Query
from mlrl_learners.monitor.tail import Growth, Tail
from mlrl_learners.runs.stored import UNREADABLE, Record
from mlrl_learners.runs.summaries import (
    WHOLE_LINE,
    EpisodeSummary,
    answers,
    beginning,
    episode_at,
    parse_line,
    summarise_line,
)

__all__ = ["EpisodeIndex", "Hits", "IndexEntry", "Numbers"]

Numbers: TypeAlias = NDArray[np.int64]

_COLUMNS = {
    "offset": "Q",
    "length": "Q",
    "line": "I",
    "part": "i",
    "iteration": "q",
    "task": "I",
    "mean": "d",
    "best": "d",
    "solved": "f",
    "turns": "I",
    "branches": "I",
}
_KEY = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One episode of the index.

    Attributes:
        key: Its name in addresses: the number of its line, and its part of the line.
        iteration: Number of training iterations before it.
        summary: Its figures.
    """

    key: str
    iteration: int
    summary: EpisodeSummary


@dataclass(frozen=True, slots=True)
class Hits:
    """One page of search results.

    Attributes:
        numbers: Numbers of the episodes, arguments of `EpisodeIndex.entry`.
        start: Position in the order at which the page begins.
        end: Position at which the next page begins.
        total: Number of episodes in the order.
    """

    numbers: Sequence[int]
    start: int
    end: int
    total: int


class EpisodeIndex:
    """Index of `episodes.jsonl` (one rollout per line) or `evaluations.jsonl` (many episodes).

    It can be used from several threads.

    Args:
        path: The file; it may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable = 0
        self.has_trees = False
        self._tail = Tail(path)
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._clear()

    def __len__(self) -> int:
        return len(self._columns["offset"])

    @property
    def progress(self) -> float:
        """Share of the file that has been read, in [0, 1]."""
        size = self._tail.size
        return min(1.0, self._tail.position / size) if size else 1.0

    @property
    def is_reading(self) -> bool:
        """Whether a part of the file is still being read."""
        return self._reading.locked()

    def catch_up(self, wait_seconds: float = 0.3) -> None:
        """Read new lines in a background thread, and wait for it up to `wait_seconds`."""
        thread = threading.Thread(target=self.read_all, args=(wait_seconds,), daemon=True)
        thread.start()
        thread.join(wait_seconds)

    def read_all(self, wait_seconds: float = -1) -> None:
        """Read to the end of the file.

        Args:
            wait_seconds: Maximum time to wait for another thread that is reading; -1 for no limit.
                After it, the call returns without having read.
        """
        if not self._reading.acquire(timeout=wait_seconds):
            return
        try:
            while not self._take(self._tail.read()):
                pass
        finally:
            self._reading.release()

    def select(self, query: Query) -> Numbers:
        """Return the numbers of the episodes that match a query apart from its text, in order."""
        with self._lock:
            column = {name: np.array(values) for name, values in self._columns.items()}
            tasks = [query.task.casefold() in name.casefold() for name in self._task_names]
        keep = np.ones(len(column["offset"]), dtype=bool)
        if query.task:
            keep &= np.array(tasks, dtype=bool)[column["task"]]
        if query.solved:
            keep &= (column["solved"] > 0) == (query.solved == "yes")
        for name, low, high in (
            ("mean", query.low, query.high),
            ("iteration", query.first, query.last),
        ):
            if low is not None:
                keep &= column[name] >= low
            if high is not None:
                keep &= column[name] <= high
        return query.ordered(np.flatnonzero(keep), column["mean"])

    def search(self, numbers: Numbers, text: str, *, start: int, most: int, seconds: float) -> Hits:
        """Return the next episodes in which an agent wrote `text`.

        Args:
            numbers: Result of `select`.
            text: Text to search for, regardless of case; empty matches every episode.
            start: Position in the order at which to begin.
            most: Maximum number of hits.
            seconds: Time limit.
        """
        start = max(0, min(start, len(numbers)))
        if not text:
            end = min(start + most, len(numbers))
            return Hits(numbers[start:end].tolist(), start, end, len(numbers))
        found: list[int] = []
        at, deadline = start, time.monotonic() + seconds
        finder = Finder(text)
        with LineReader(self.path) as reader:
            while at < len(numbers) and len(found) < most and time.monotonic() < deadline:
                number = int(numbers[at])
                at += 1
                if self._is_hit(reader, number, finder):
                    found.append(number)
        return Hits(found, start, at, len(numbers))

    def entry(self, number: int) -> IndexEntry:
        """Return the figures of one episode."""
        with self._lock:
            value = {name: values[number] for name, values in self._columns.items()}
            task = self._task_names[value["task"]]
        part = "" if value["part"] == WHOLE_LINE else f"-{value['part']}"
        summary = EpisodeSummary(
            task,
            value["mean"],
            value["best"],
            value["solved"],
            value["turns"],
            value["branches"],
        )
        return IndexEntry(f"{value['line']}{part}", value["iteration"], summary)

    def number(self, key: str) -> int | None:
        """Return the number of the episode with a key; None if there is none."""
        named = _KEY.fullmatch(key)
        if named is None:
            return None
        with self._lock:
            at_line = np.array(self._columns["line"]) == int(named[1])
            at_part = np.array(self._columns["part"]) == int(named[2] or WHOLE_LINE)
        found = np.flatnonzero(at_line & at_part)
        return int(found[0]) if len(found) else None

    def read(self, number: int) -> Record | None:
        """Return the record of an episode; None if the file no longer holds it."""
        with LineReader(self.path) as reader:
            return self._read(reader, number)

    def beginnings(self, numbers: Sequence[int]) -> list[str]:
        """Return the first line that an agent wrote in each episode; empty if it is unreadable."""
        parsed: dict[int, object] = {}  # by offset, because many episodes may share a line
        found = []
        with LineReader(self.path) as reader:
            for number in numbers:
                offset, length = self._place(number)
                if offset not in parsed:
                    parsed[offset] = parse_line(reader.line(offset, length))
                found.append(beginning(parsed[offset], self._columns["part"][number]))
        return found

    def last_of(self, task_id: str) -> int | None:
        """Return the number of the last episode of a task; None if it was never played."""
        with self._lock:
            task = self._tasks.get(task_id)
            at_task = np.flatnonzero(np.array(self._columns["task"]) == task)
        return None if task is None or not len(at_task) else int(at_task[-1])

    def _read(self, reader: LineReader, number: int) -> Record | None:
        return episode_at(reader.line(*self._place(number)), self._columns["part"][number])

    def _is_hit(self, reader: LineReader, number: int, finder: Finder) -> bool:
        if not finder.may_be_in(reader.line(*self._place(number))):
            return False
        record = self._read(reader, number)
        try:
            return record is not None and any(finder.is_in(text) for text in answers(record))
        except UNREADABLE:
            return False

    def _place(self, number: int) -> tuple[int, int]:
        with self._lock:
            return self._columns["offset"][number], self._columns["length"][number]

    def _take(self, growth: Growth) -> bool:
        """Add the episodes of new lines; return whether the end of the file was reached."""
        with self._lock:
            if growth.is_rewritten:
                self._clear()
        for offset, line in growth.lines:
            found, lost = summarise_line(line)
            with self._lock:
                for part, iteration, summary in found:
                    self._add(offset, len(line), part, iteration, summary)
                self._lines += 1
                self.unreadable += lost
        return growth.is_all

    def _add(
        self, offset: int, length: int, part: int, iteration: int, summary: EpisodeSummary
    ) -> None:
        if (task := self._tasks.get(summary.task_id)) is None:
            task = self._tasks[summary.task_id] = len(self._task_names)
            self._task_names.append(summary.task_id)
        values = (
            offset,
            length,
            self._lines,
            part,
            iteration,
            task,
            summary.mean,
            summary.best,
            summary.solved,
            summary.turns,
            summary.branches,
        )
        self.has_trees |= summary.branches > 1
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def _clear(self) -> None:
        self._columns: dict[str, array[Any]] = {n: array(kind) for n, kind in _COLUMNS.items()}
        self._tasks: dict[str, int] = {}
        self._task_names: list[str] = []
        self._lines = 0
        self.unreadable = 0
        self.has_trees = False

"""Where the episodes of a file are, and the figures they are searched by; never their texts.

Some fifty bytes an episode are kept in memory. The index follows the file while it is written,
and is made anew when a resumed run has rewritten it. Texts are searched in the file itself, a page
of hits at a time.
"""

import json
import re
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlrl_learners.monitor.lines import Finder, LineReader
from mlrl_learners.monitor.query import Query
from mlrl_learners.monitor.stored import UNREADABLE, Row, Summary, summarise, written
from mlrl_learners.monitor.tail import Growth, Tail

__all__ = ["Entry", "EpisodeIndex", "Hits", "Numbers"]

Numbers: TypeAlias = NDArray[np.int64]

_COLUMNS = {
    "offset": "Q",
    "length": "Q",
    "line": "I",
    "part": "i",
    "iteration": "q",
    "task": "I",
    "mean": "d",
    "best": "f",
    "solved": "f",
    "turns": "I",
    "branches": "I",
}
_KEY = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?")
_WHOLE_LINE = -1  # the part of a line that is one episode


@dataclass(frozen=True, slots=True)
class Entry:
    """One episode of the index.

    Attributes:
        key: Its name in addresses: the number of its line, and its place within it.
        iteration: After which it was played.
        summary: Its figures.
    """

    key: str
    iteration: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class Hits:
    """A page of what was found.

    Attributes:
        numbers: Of the episodes, as `entry` takes them.
        start: Where in the order the page begins.
        end: Where to look on.
        total: How many episodes there are to look at.
    """

    numbers: Sequence[int]
    start: int
    end: int
    total: int


class EpisodeIndex:
    """Follows `episodes.jsonl`, a rollout a line, or `evaluations.jsonl`, many episodes a line.

    Safe from several threads.

    Args:
        path: The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable = 0
        self._tail = Tail(path)
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._clear()

    def __len__(self) -> int:
        return len(self._columns["offset"])

    @property
    def progress(self) -> float:
        """What share of the file has been read, from 0 to 1."""
        size = self._tail.size
        return min(1.0, self._tail.position / size) if size else 1.0

    def catch_up(self, wait_seconds: float = 0.3) -> None:
        """Read on in a thread of its own, and wait for that, but not for long."""
        thread = threading.Thread(target=self.read_all, daemon=True)
        thread.start()
        thread.join(wait_seconds)

    def read_all(self) -> None:
        """Read to the end of the file; return at once where another thread does it already."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            while not self._take(self._tail.read()):
                pass
        finally:
            self._reading.release()

    def select(self, query: Query) -> Numbers:
        """Return the numbers of the episodes that fit a query in all but its text, in order."""
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
        return _ordered(np.flatnonzero(keep), column["mean"], query)

    def search(self, numbers: Numbers, text: str, *, start: int, most: int, seconds: float) -> Hits:
        """Return the next episodes in which an agent wrote `text`.

        Args:
            numbers: From `select`.
            text: Empty for any.
            start: Where in the order to begin.
            most: How many to return.
            seconds: When to stop without having found so many.
        """
        start = max(0, min(start, len(numbers)))
        if not text:
            end = min(start + most, len(numbers))
            return Hits(numbers[start:end].tolist(), start, end, len(numbers))
        found: list[int] = []
        at, deadline = start, time.monotonic() + seconds
        is_there = Finder(text)
        with LineReader(self.path) as reader:
            while at < len(numbers) and len(found) < most and time.monotonic() < deadline:
                number = int(numbers[at])
                at += 1
                if self._is_hit(reader, number, is_there):
                    found.append(number)
        return Hits(found, start, at, len(numbers))

    def entry(self, number: int) -> Entry:
        """Return one episode's figures."""
        with self._lock:
            value = {name: values[number] for name, values in self._columns.items()}
            task = self._task_names[value["task"]]
        part = "" if value["part"] == _WHOLE_LINE else f"-{value['part']}"
        summary = Summary(
            task,
            value["mean"],
            value["best"],
            value["solved"],
            value["turns"],
            value["branches"],
        )
        return Entry(f"{value['line']}{part}", value["iteration"], summary)

    def number(self, key: str) -> int | None:
        """Return the number of the episode of a key, None where there is none."""
        named = _KEY.fullmatch(key)
        if named is None:
            return None
        with self._lock:
            at_line = np.array(self._columns["line"]) == int(named[1])
            at_part = np.array(self._columns["part"]) == int(named[2] or _WHOLE_LINE)
        found = np.flatnonzero(at_line & at_part)
        return int(found[0]) if len(found) else None

    def read(self, number: int) -> Row | None:
        """Return an episode as it is stored, None where the file no longer holds it."""
        with LineReader(self.path) as reader:
            return self._read(reader, number)

    def _read(self, reader: LineReader, number: int) -> Row | None:
        line, part = reader.line(*self._place(number)), self._columns["part"][number]
        try:
            row = json.loads(line)
            found = row if part == _WHOLE_LINE else row["episodes"][part]
        except UNREADABLE:
            return None
        return found if isinstance(found, dict) else None

    def _is_hit(self, reader: LineReader, number: int, is_there: Finder) -> bool:
        if not is_there.may_be_in(reader.line(*self._place(number))):
            return False
        row = self._read(reader, number)
        try:
            return row is not None and any(is_there.is_in(text) for text in written(row))
        except UNREADABLE:
            return False

    def _place(self, number: int) -> tuple[int, int]:
        with self._lock:
            return self._columns["offset"][number], self._columns["length"][number]

    def _take(self, growth: Growth) -> bool:
        """Add what the file has grown by; return whether that was all."""
        with self._lock:
            if growth.anew:
                self._clear()
        for offset, line in growth.lines:
            found, lost = _episodes(line)
            with self._lock:
                for part, iteration, summary in found:
                    self._add(offset, len(line), part, iteration, summary)
                self._lines += 1
                self.unreadable += lost
        return growth.is_all

    def _add(self, offset: int, length: int, part: int, iteration: int, summary: Summary) -> None:
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
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def _clear(self) -> None:
        self._columns: dict[str, array[Any]] = {n: array(kind) for n, kind in _COLUMNS.items()}
        self._tasks: dict[str, int] = {}
        self._task_names: list[str] = []
        self._lines = 0
        self.unreadable = 0


def _ordered(numbers: Numbers, mean: NDArray[np.float64], query: Query) -> Numbers:
    if query.order == "newest":
        return numbers[::-1]
    if query.order == "oldest":
        return numbers
    by_return = np.argsort(mean[numbers], kind="stable")
    return numbers[by_return if query.order == "worst" else by_return[::-1]]


def _episodes(line: bytes) -> tuple[list[tuple[int, int, Summary]], int]:
    """Return the episodes of a line, each with its part and iteration, and what was unreadable."""
    try:
        row = json.loads(line)
        iteration = _bounded(row["iteration"])
        parts: Mapping[int, Row] = (
            {_WHOLE_LINE: row} if "node" in row else dict(enumerate(row["episodes"]))
        )
    except UNREADABLE:
        return [], 1
    found = []
    for part, episode in parts.items():
        try:
            found.append((part, iteration, summarise(episode)))
        except UNREADABLE:
            continue
    return found, len(parts) - len(found)


def _bounded(value: object) -> int:
    """Return an iteration that a column can hold."""
    iteration = int(str(value))
    if abs(iteration) >= 1 << 60:
        raise ValueError(f"no iteration: {iteration}")
    return iteration

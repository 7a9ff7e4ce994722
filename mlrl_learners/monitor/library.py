"""Run directories below a folder, searched again every few seconds."""

import json
import os
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlrl_learners.monitor.index import EpisodeIndex
from mlrl_learners.monitor.metrics_table import MetricsTable
from mlrl_learners.monitor.query import Source
from mlrl_learners.report.charts import COLORS
from mlrl_learners.report.configuration import options_of, planned_iterations
from mlrl_learners.runs.files import (
    CONFIG_FILE,
    EPISODES_FILE,
    EVALUATIONS_FILE,
    FAILURES_FILE,
    METRICS_FILE,
)
from mlrl_learners.runs.regular import read_text
from mlrl_learners.runs.stored import UNREADABLE

__all__ = ["Library", "MonitoredRun", "free_colors"]

_FILES = (METRICS_FILE, EPISODES_FILE, EVALUATIONS_FILE, FAILURES_FILE)
_DEEPEST = 4
_NOT_RUNS = frozenset({"checkpoints", "wandb", "tensorboard"})
_RESCAN_SECONDS = 2.0
_MOST_RESULT = 1 << 24
_DISTINCT = 7
"""Number of colours that differ most, the first of the palette; the others are for more runs."""


@dataclass(frozen=True)
class MonitoredRun:
    """One run directory.

    Attributes:
        name: Its path relative to the monitored folder.
        path: The folder.
        color: Index of its colour, which it keeps whichever runs are shown.
        metrics: Its curves.
        episodes: Its indexes, of training and of evaluations.
    """

    name: str
    path: Path
    color: int
    metrics: MetricsTable
    episodes: dict[Source, EpisodeIndex] = field(default_factory=dict)
    _options: dict[tuple[int, int, int], dict[str, str]] = field(default_factory=dict)

    @classmethod
    def at(cls, name: str, path: Path, color: int = 0) -> "MonitoredRun":
        """Return the run in a folder, without reading its files."""
        indices: dict[Source, EpisodeIndex] = {
            "training": EpisodeIndex(path / EPISODES_FILE),
            "evaluation": EpisodeIndex(path / EVALUATIONS_FILE),
        }
        return cls(name, path, color, MetricsTable(name, path), indices)

    @property
    def is_trained(self) -> bool:
        """Whether it is a run of training, also before its first iteration."""
        files = (METRICS_FILE, CONFIG_FILE)
        return any(_file_stamp(self.path / name)[0] > 0 for name in files)

    @property
    def main_source(self) -> Source:
        """Where most of its episodes are: evaluations if it was never trained."""
        return "training" if _file_stamp(self.path / EPISODES_FILE)[0] else "evaluation"

    def stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Return size, modification time and inode of each file, to detect changes."""
        return tuple(_file_stamp(self.path / name) for name in _FILES)

    def written_at(self) -> float:
        """Return when a file of the run was last written, in seconds since the epoch."""
        return max((stamp[1] for stamp in self.stamp()), default=0) / 1e9

    def text(self, name: str) -> str:
        """Return the end of a file of the run as text; empty if it is missing or a link."""
        return read_text(self.path / name)

    def result(self, name: str) -> Mapping[str, Any]:
        """Return the JSON values of a file of the run; empty if there are none."""
        try:
            found = json.loads(read_text(self.path / name, _MOST_RESULT))
        except UNREADABLE:
            return {}
        return found if isinstance(found, Mapping) else {}

    def planned_iterations(self) -> int | None:
        """Return the number of iterations in the run's configuration; None if it has none."""
        return planned_iterations(self.options())

    def options(self) -> dict[str, str]:
        """Return dotted name -> value of the run's configuration; empty if it has none."""
        stamp = _file_stamp(self.path / CONFIG_FILE)
        if stamp not in self._options:
            self._options.clear()
            self._options[stamp] = options_of(self.text(CONFIG_FILE))
        return self._options.get(stamp, {})


class Library:
    """Finds runs below a folder.

    Args:
        root: A folder of runs, at any depth up to four, or a run itself.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._runs: dict[str, MonitoredRun] = {}
        self._looked_at = -_RESCAN_SECONDS
        self._lock = threading.Lock()

    def runs(self) -> list[MonitoredRun]:
        """Return the runs, ordered by name."""
        with self._lock:
            if time.monotonic() - self._looked_at >= _RESCAN_SECONDS:
                found = dict(_find(self.root))
                kept = {name: run for name, run in self._runs.items() if name in found}
                for name in sorted(found.keys() - kept.keys()):
                    color = _free_color(name, {run.color for run in kept.values()})
                    kept[name] = MonitoredRun.at(name, found[name], color)
                self._runs = dict(sorted(kept.items()))
                self._looked_at = time.monotonic()
            return list(self._runs.values())

    def get(self, name: str) -> MonitoredRun | None:
        """Return the run with a name; the name is looked up and never used as a path."""
        return next((run for run in self.runs() if run.name == name), None)


def _find(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, inner, files in os.walk(root):
        path = Path(folder)
        below = path.relative_to(root)
        is_run = not {METRICS_FILE, EPISODES_FILE, EVALUATIONS_FILE}.isdisjoint(files)
        if is_run and _is_showable(str(below)):
            yield root.resolve().name if path == root else below.as_posix(), path
        if is_run or len(below.parts) >= _DEEPEST:
            inner.clear()
        inner[:] = [name for name in inner if name not in _NOT_RUNS and not name.startswith(".")]


def free_colors(names: Iterable[str]) -> dict[str, int]:
    """Return name -> colour: those that differ most first, the same for the same names."""
    found: dict[str, int] = {}
    for name in names:
        found[name] = _free_color(name, found.values())
    return found


def _free_color(name: str, taken: Collection[int]) -> int:
    """Return the colour that follows from a name, or the next one that no other run has."""
    first = zlib.crc32(name.encode("utf-8"))
    more = COLORS - _DISTINCT
    colors = [(first + step) % _DISTINCT for step in range(_DISTINCT)]
    colors += [_DISTINCT + (first + step) % more for step in range(more)]
    return next((color for color in colors if color not in taken), first % COLORS)


def _is_showable(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _file_stamp(path: Path) -> tuple[int, int, int]:
    try:
        status = path.lstat()
    except OSError:
        return (0, 0, 0)
    return (status.st_size, status.st_mtime_ns, status.st_ino)

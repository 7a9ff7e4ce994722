"""The curves of a run, kept while it is written: metrics as columns, evaluations as points."""

import json
import math
import threading
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from mlrl_learners.monitor.stored import UNREADABLE
from mlrl_learners.monitor.tail import Tail
from mlrl_learners.report.panels import Curves, Held

__all__ = ["MetricsTable"]

_EPISODES = b', "episodes": ['


class MetricsTable:
    """Follows `metrics.jsonl` and `evaluations.jsonl`. Safe from several threads.

    Args:
        name: Of the run.
        run_dir: Its folder; neither file need exist yet.
    """

    def __init__(self, name: str, run_dir: Path) -> None:
        self.name = name
        self._metrics = Tail(run_dir / "metrics.jsonl")
        self._evaluations = Tail(run_dir / "evaluations.jsonl")
        self._lock = threading.Lock()
        self._columns: dict[str, array[float]] = {}
        self._held_out: dict[tuple[str, str], dict[int, Held]] = {}

    def curves(self) -> Curves:
        """Read on, and return everything that was read so far."""
        with self._lock:
            self._read_metrics()
            self._read_evaluations()
            columns = {name: np.array(values) for name, values in self._columns.items()}
            most = max(self._held_out.values(), key=len, default={})
            return Curves(self.name, columns, [most[done] for done in sorted(most)])

    def last_row(self) -> dict[str, float]:
        """Return the metrics of the last iteration alone, without reading the others."""
        return _numbers(self._metrics.last_line())

    def _read_metrics(self) -> None:
        is_all = False
        while not is_all:
            growth = self._metrics.read()
            is_all = growth.is_all
            if growth.anew:
                self._columns.clear()
            for _, line in growth.lines:
                self._add(_numbers(line))

    def _read_evaluations(self) -> None:
        is_all = False
        while not is_all:
            growth = self._evaluations.read()
            is_all = growth.is_all
            if growth.anew:
                self._held_out.clear()
            for _, line in growth.lines:
                self._add_evaluation(line)

    def _add(self, row: dict[str, float]) -> None:
        if "iteration" not in row:
            return
        done = self._columns.setdefault("iteration", array("d"))
        while done and done[-1] >= row["iteration"]:  # written twice: the later line counts
            for column in self._columns.values():
                column.pop()
        for name in row.keys() - self._columns.keys():
            self._columns[name] = array("d", [math.nan] * len(done))
        for name, column in self._columns.items():
            column.append(row.get(name, math.nan))

    def _add_evaluation(self, line: bytes) -> None:
        try:
            row = _without_episodes(line)
            mean = float(row["mean_return"])
            low, high = row.get("interval") or (mean, mean)
            held = Held(int(row["iteration"]), mean, float(low), float(high))
        except UNREADABLE:
            return
        group = (str(row.get("env_id")), str(row.get("split")))
        self._held_out.setdefault(group, {})[held.iteration] = held


def _numbers(line: bytes) -> dict[str, float]:
    try:
        row = json.loads(line)
        return {
            str(name): float(value)
            for name, value in row.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }
    except UNREADABLE:
        return {}


def _without_episodes(line: bytes) -> Any:  # noqa: ANN401 - JSON values
    """Parse the figures of an evaluation, which stand before its many transcripts."""
    figures, found, _ = line.partition(_EPISODES)
    if found:
        try:
            return json.loads(figures + b"}")
        except ValueError:
            pass
    return json.loads(line)

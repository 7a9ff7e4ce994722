"""Curves of a run that is still written: metrics as columns, evaluations as points."""

import json
import math
import threading
from array import array
from pathlib import Path

import numpy as np

from mlrl_learners.monitor.tail import Tail
from mlrl_learners.report.panels import Curves, EvaluationPoint
from mlrl_learners.runs.evaluations import StoredIteration, decode_iteration, parse_figures
from mlrl_learners.runs.files import EVALUATIONS_FILE, METRICS_FILE
from mlrl_learners.runs.stored import UNREADABLE

__all__ = ["MetricsTable"]


class MetricsTable:
    """Follows `metrics.jsonl` and `evaluations.jsonl`.

    It can be used from several threads.

    Args:
        name: Name of the run.
        run_dir: Its folder; the files may not exist yet.
    """

    def __init__(self, name: str, run_dir: Path) -> None:
        self.name = name
        self._metrics = Tail(run_dir / METRICS_FILE)
        self._evaluations = Tail(run_dir / EVALUATIONS_FILE)
        self._lock = threading.Lock()
        self._columns: dict[str, array[float]] = {}
        self._held_out: dict[tuple[str, str], dict[int, EvaluationPoint]] = {}

    def curves(self) -> Curves:
        """Read new lines and return all curves."""
        with self._lock:
            self._read_metrics()
            self._read_evaluations()
            columns = {name: np.array(values) for name, values in self._columns.items()}
            most = max(self._held_out.values(), key=len, default={})
            return Curves(self.name, columns, [most[done] for done in sorted(most)])

    def last_row(self) -> StoredIteration | None:
        """Return the metrics of the last iteration without reading the others; None for none."""
        return _decoded(self._metrics.last_line())

    def _read_metrics(self) -> None:
        is_all = False
        while not is_all:
            growth = self._metrics.read()
            is_all = growth.is_all
            if growth.is_rewritten:
                self._columns.clear()
            for _, line in growth.lines:
                if (row := _decoded(line)) is not None:
                    self._add(row)

    def _read_evaluations(self) -> None:
        is_all = False
        while not is_all:
            growth = self._evaluations.read()
            is_all = growth.is_all
            if growth.is_rewritten:
                self._held_out.clear()
            for _, line in growth.lines:
                self._add_evaluation(line)

    def _add(self, row: StoredIteration) -> None:
        values = {"iteration": float(row.iteration), **row.metrics}
        if row.seconds:
            values["seconds"] = row.seconds
        done = self._columns.setdefault("iteration", array("d"))
        while done and done[-1] >= row.iteration:  # written twice: the later line counts
            for column in self._columns.values():
                column.pop()
        for name in values.keys() - self._columns.keys():
            self._columns[name] = array("d", [math.nan] * len(done))
        for name, column in self._columns.items():
            column.append(values.get(name, math.nan))

    def _add_evaluation(self, line: bytes) -> None:
        try:
            found = parse_figures(line)
        except UNREADABLE:
            return
        point = EvaluationPoint(found.iteration, found.mean_return, *found.interval)
        group = (found.env_id, found.split)
        self._held_out.setdefault(group, {})[found.iteration] = point


def _decoded(line: bytes) -> StoredIteration | None:
    try:
        return decode_iteration(json.loads(line))
    except UNREADABLE:
        return None

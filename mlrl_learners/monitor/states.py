"""State of a run in words: finished, running, or quiet for some time."""

import time

from mlrl_learners.monitor.library import MonitoredRun
from mlrl_learners.report.chart_scales import counted

__all__ = ["done_iterations", "state_of"]

_WRITING_SECONDS = 600.0


def done_iterations(run: MonitoredRun) -> int:
    """Return the number of iterations that a run has written."""
    last = run.metrics.last_row()
    return 0 if last is None else last.iteration


def state_of(run: MonitoredRun) -> str:
    """Return `finished`, `running`, or for how long it has not been written."""
    planned, done = run.planned_iterations(), done_iterations(run)
    if planned is not None and done >= planned:
        return "finished"
    quiet = time.time() - run.written_at()
    return "running" if quiet < _WRITING_SECONDS else f"quiet for {_span(quiet)}"


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return counted(seconds / 60, "minute")

"""Benchmark of the monitor with a long run: two days of metrics, written while the page is open.

A run of 17,280 iterations (one each 10 s) is served. Pages are timed while nothing is written, and
while a writer appends iterations without a pause.
"""

import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.perf.monitor_run import append_iteration

__all__ = ["ITERATIONS", "measure_long_run", "write_long_run"]

ITERATIONS = 17_280
RUN = "two-days"
REPEATS = 9
WRITE_PAUSE_SECONDS = 0.001  # the writer shares the machine with the server


def write_long_run(runs: Path) -> None:
    """Write the metrics of two days below a folder of runs."""
    folder = runs / RUN
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"train:\n  iterations: {ITERATIONS}\n")
    for iteration in range(1, ITERATIONS + 1):
        append_iteration(folder, iteration, ITERATIONS, 0)


def measure_long_run(runs: Path, address: str, get: Callable[[str], str]) -> dict[str, Any]:
    """Return the times of page and charts, in seconds.

    Args:
        runs: Folder in which `write_long_run` wrote.
        address: Address of the monitor of that folder.
        get: Returns the text at an address.
    """
    page, charts = f"{address}/?chosen=1&run={RUN}", f"{address}/charts?run={RUN}"
    figures: dict[str, Any] = {"iterations": ITERATIONS, "first_seconds": _seconds(get, page)}
    figures["page_seconds"] = _median(get, page)
    figures["charts_seconds"] = _median(get, charts)
    with _writing(runs / RUN) as written:
        figures["page_while_written_seconds"] = _median(get, page)
        figures["charts_while_written_seconds"] = _median(get, charts)
    figures["written_meanwhile"] = len(written)
    delays = [_delay(runs / RUN, charts, get, written[-1] + 1 + n) for n in range(REPEATS)]
    figures["iteration_to_chart_seconds"] = statistics.median(delays)
    return figures


@contextmanager
def _writing(folder: Path) -> Iterator[list[int]]:
    """Append iterations without a pause; yield the list of their numbers."""
    written, ends = [ITERATIONS], threading.Event()

    def write() -> None:
        while not ends.wait(WRITE_PAUSE_SECONDS):
            append_iteration(folder, written[-1] + 1, 2 * ITERATIONS, 0)
            written.append(written[-1] + 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield written
    finally:
        ends.set()
        writer.join()


def _delay(folder: Path, charts: str, get: Callable[[str], str], iteration: int) -> float:
    """Return the time from a written iteration until an x axis ends at it."""
    append_iteration(folder, iteration, 2 * ITERATIONS, 0)
    started = time.perf_counter()
    while f" {iteration:.1f} " not in get(charts):
        pass
    return round(time.perf_counter() - started, 4)


def _median(get: Callable[[str], str], address: str) -> float:
    return statistics.median(_seconds(get, address) for _ in range(REPEATS))


def _seconds(get: Callable[[str], str], address: str) -> float:
    started = time.perf_counter()
    get(address)
    return round(time.perf_counter() - started, 4)

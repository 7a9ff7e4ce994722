"""Benchmark of the monitor with 100,000 episodes: page loads, memory, index and live updates.

    python -m benchmarks.perf.monitor [--episodes 100000] [--folder /tmp/runs]

It writes a run of about 1.3 GB and the metrics of two days, serves them from a separate process,
and prints one JSON line. The runs are deleted afterwards, unless `--folder` names a folder, whose
episodes are reused. There is no comparison with another library.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.monitor_long import measure_long_run, write_long_run
from benchmarks.perf.monitor_run import append_iteration, write_run

__all__ = ["main"]

RUN = "coders"
REPEATS = 9
PAGES = {
    "curves": f"/?chosen=1&run={RUN}",
    "list": f"/episodes?run={RUN}",
    "list, filtered and sorted": f"/episodes?run={RUN}&task=HumanEval/1&low=1&order=best",
    "list, last page": f"/episodes?run={RUN}&at={{last}}",
    "search, a rare text": f"/episodes?run={RUN}&text=%3E+98%5D&order=oldest",
    "search, nothing found": f"/episodes?run={RUN}&text=nobody+wrote+this",
    "reader": f"/episode?run={RUN}&key={{middle}}",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the results."""
    arguments = parse_arguments(
        argv,
        "The monitor with many episodes.",
        episodes=100_000,
        folder={"type": Path, "help": "folder that keeps the run; default: a temporary one"},
    )
    with tempfile.TemporaryDirectory() as passing:
        runs = arguments.folder or Path(passing)
        if not (runs / RUN).exists():
            write_run(runs / RUN, episodes=arguments.episodes)
        write_long_run(runs)
        print(json.dumps(measure(runs, arguments.episodes)))
    return 0


def measure(runs: Path, episodes: int) -> dict[str, Any]:
    """Serve the runs and return the measurements, in seconds and MiB."""
    command = [sys.executable, "-m", "mlrl_learners", "monitor", str(runs), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - it is a pipe
            address = server.stdout.readline().strip().rstrip("/")
            return {"episodes": episodes, **_figures(runs, address, server.pid, episodes)}
        finally:
            server.terminate()


def _figures(runs: Path, address: str, pid: int, episodes: int) -> dict[str, Any]:
    size = (runs / RUN / "episodes.jsonl").stat().st_size
    figures: dict[str, Any] = {"file_mib": round(size / 2**20), "memory_start_mib": _memory(pid)}
    figures["curves_first_seconds"] = _seconds(lambda: _get(address + PAGES["curves"]))
    started = time.perf_counter()
    figures["list_first_seconds"] = _seconds(lambda: _get(address + PAGES["list"]))
    while "still being read" in _get(address + f"/fresh?run={RUN}"):
        time.sleep(0.1)
    figures["index_seconds"] = round(time.perf_counter() - started, 2)
    figures["memory_indexed_mib"] = _memory(pid)
    places = {"middle": episodes // 2, "last": max(0, episodes - 50)}
    figures["page_seconds"] = {
        name: statistics.median(
            _seconds(partial(_get, address + path.format_map(places))) for _ in range(REPEATS)
        )
        for name, path in PAGES.items()
    }
    figures["update_seconds"] = statistics.median(
        _update(runs, address, index) for index in range(REPEATS)
    )
    figures["memory_end_mib"] = _memory(pid)
    figures["long_run"] = measure_long_run(runs, address, _get)
    return figures


def _update(runs: Path, address: str, index: int) -> float:
    """Return the delay from a written iteration until list and charts show it."""
    iteration = 1_000_000 + index
    append_iteration(runs / RUN, iteration, iteration, 20)
    return _seconds(lambda: _wait_for(address, f"{iteration:,}"))


def _wait_for(address: str, shown: str) -> None:
    while shown not in _get(f"{address}/episodes?run={RUN}"):
        pass
    _get(f"{address}/charts?run={RUN}")


def _get(address: str) -> str:
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - a server of ours
        return str(answer.read().decode())


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 4)


def _memory(pid: int) -> int:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    kibibytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kibibytes) // 1024


if __name__ == "__main__":
    sys.exit(main())

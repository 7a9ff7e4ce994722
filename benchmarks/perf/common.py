"""What every figure shares: two sides that take turns, medians, a ratio, one JSON line.

A side that needs its own interpreter or must keep its state between rounds is a `Worker`: a
process that answers one JSON line for each one it reads. The standard library alone is imported
here, because the peers' interpreter imports this file too.
"""

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

__all__ = [
    "PICTURES",
    "ROOT",
    "Measurement",
    "Worker",
    "alternate",
    "hardware",
    "machine_name",
    "peak_rss_mib",
    "peers_python",
    "print_figure",
    "serve",
    "spread",
    "versions",
]

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "images"
Measurement = dict[str, float]

_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Worker:
    """One side of a figure in a process of its own, kept alive between rounds.

    Args:
        python: The interpreter to run.
        module: What to run with `-m`; it calls `serve`.
        setup: Sent once, before the first round; the answer is `about`.
    """

    def __init__(self, python: str, module: str, setup: Mapping[str, object]) -> None:
        self._process = subprocess.Popen(
            [python, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            env={**os.environ, **_ENVIRONMENT},
        )
        self.about = self._ask(setup)

    def round(self, seed: int, **how: str) -> Measurement:
        """Do the work once, in one of the ways that the side knows; return what was measured."""
        return {name: float(value) for name, value in self._ask({"seed": seed, **how}).items()}

    def _ask(self, request: Mapping[str, object]) -> dict[str, float]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the worker's pipes are closed")
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the worker ended early, exit status {self._process.wait()}")
        answered: dict[str, float] = json.loads(answer)
        return answered

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def serve(
    prepare: Callable[[dict[str, object]], tuple[Callable[..., Measurement], dict[str, object]]],
) -> None:
    """Be a worker: prepare from the first line, then measure once for every further line.

    Args:
        prepare: Takes the setup; returns the work (a seed, and what `round` is told besides, to a
            measurement) and facts about this side.
    """
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # libraries may print; the pipe is ours
        work, about = prepare(json.loads(sys.stdin.readline()))
        print(json.dumps(about), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(work(**json.loads(line))), file=answers, flush=True)


def alternate(
    sides: Mapping[str, Callable[[int], Measurement]], *, rounds: int, warmup: int = 1
) -> dict[str, list[Measurement]]:
    """Let the sides take turns, so that a busy machine slows both alike.

    Args:
        sides: For each side, the work: seed to measurement.
        rounds: Turns a side, measured.
        warmup: Turns a side before those, thrown away.
    """
    measured: dict[str, list[Measurement]] = {name: [] for name in sides}
    for index in range(-warmup, rounds):
        for name, work in sides.items():
            measurement = work(index + warmup)
            seconds = f"{measurement['seconds']:.2f} s" if "seconds" in measurement else ""
            kind = "warm-up" if index < 0 else f"round {index + 1}/{rounds}"
            print(f"{name}: {kind} {seconds}", file=sys.stderr, flush=True)
            if index >= 0:
                measured[name].append(measurement)
    return measured


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, minimum and maximum."""
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the installed version of each package, with Python's own."""
    found = {"python": platform.python_version()}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def hardware() -> dict[str, object]:
    """Return what the figure depends on: processor, cores, memory, system, load before it."""
    cpuinfo = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else []
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "memory_gib": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "load_before": round(os.getloadavg()[0], 2),
    }


def machine_name() -> str:
    """Return a file name for this kind of machine, e.g. `amd-epyc-2-cores`."""
    facts = hardware()
    text = f"{facts['processor']} {facts['cores']} cores"
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def peak_rss_mib() -> float:
    """Return the most memory this process has held so far, in MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def peers_python() -> str:
    """Return the interpreter of the peers' environment.

    Raises:
        SystemExit: If there is none, with the commands that make it.
    """
    python = os.environ.get("MLRL_PEERS_PYTHON") or str(ROOT / ".venv-peers/bin/python")
    if not Path(python).exists():
        raise SystemExit(
            f"no peers' interpreter at {python!r}; make it with: python -m venv .venv-peers && "
            ".venv-peers/bin/pip install -r benchmarks/perf/peers.txt (or set MLRL_PEERS_PYTHON)"
        )
    return python


def print_figure(figure: Mapping[str, object]) -> None:
    """Print the figure as one JSON line, the last of the output."""
    print(json.dumps(figure), flush=True)

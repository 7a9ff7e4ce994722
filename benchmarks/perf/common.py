"""Shared parts of the benchmarks: alternating rounds, medians, hardware facts and worker processes.

A side that needs its own interpreter, or keeps state between rounds, is a `Worker`: a process that
answers each JSON line with one JSON line. Only the standard library is imported here, because the
interpreter of the peers imports this module as well.
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
    "cpu_precisions",
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

# Flags of /proc/cpuinfo. Without one of them products in bfloat16 are slower than in float32.
_BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Worker:
    """One side of a benchmark in its own process, which lives for all rounds.

    Args:
        python: Interpreter of the process.
        module: Module to run with `-m`; it calls `serve`.
        setup: Sent once before the first round; the answer is stored as `about`.
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
        """Run one round, with options of the side, and return the measurement."""
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
    """Run the loop of a worker: prepare from the first line, measure once for each further line.

    Args:
        prepare: Function from the setup to the work and to facts about this side. The work takes a
            seed and the options of `round`, and returns a measurement.
    """
    answers = sys.stdout
    with contextlib.redirect_stdout(
        sys.stderr
    ):  # libraries may print, and the pipe must hold JSON only
        work, about = prepare(json.loads(sys.stdin.readline()))
        print(json.dumps(about), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(work(**json.loads(line))), file=answers, flush=True)


def alternate(
    sides: Mapping[str, Callable[[int], Measurement]], *, rounds: int, warmup: int = 1
) -> dict[str, list[Measurement]]:
    """Measure the sides in alternation, so that other load on the machine slows both alike.

    Every round starts with another side. All sides of a round get the same seed.

    Args:
        sides: Work of each side: a function from a seed to a measurement.
        rounds: Measured rounds per side.
        warmup: Unmeasured rounds per side before them.
    """
    measured: dict[str, list[Measurement]] = {name: [] for name in sides}
    names = list(sides)
    for index in range(-warmup, rounds):
        seed = index + warmup
        first = seed % len(names)
        for name in names[first:] + names[:first]:
            measurement = sides[name](seed)
            seconds = f"{measurement['seconds']:.2f} s" if "seconds" in measurement else ""
            kind = "warm-up" if index < 0 else f"round {index + 1}/{rounds}"
            print(f"{name}: {kind} {seconds}", file=sys.stderr, flush=True)
            if index >= 0:
                measured[name].append(measurement)
    return measured


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, minimum and maximum, and `n`, the number of values."""
    return {
        "n": len(values),
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the installed versions of packages, and of Python."""
    found = {"python": platform.python_version()}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def hardware() -> dict[str, object]:
    """Return facts about the machine: processor, cores, memory, system, and the current load."""
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


def cpu_precisions(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return the precisions that are worth measuring here: bf16 only where the CPU computes it."""
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    flags = set(re.findall(r"\w+", " ".join(re.findall(r"(?m)^(?:flags|Features)\b.*", text))))
    return ["float32", "bf16"] if flags & _BFLOAT16_FLAGS else ["float32"]


def machine_name() -> str:
    """Return a file name for this kind of machine, such as `amd-epyc-2-cores`."""
    facts = hardware()
    text = f"{facts['processor']} {facts['cores']} cores"
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def peak_rss_mib() -> float:
    """Return the peak resident memory of this process in MiB, over its whole life."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def peers_python() -> str:
    """Return the interpreter of the environment with the peers.

    Raises:
        SystemExit: If it does not exist; the message holds the commands that create it.
    """
    python = os.environ.get("MLRL_PEERS_PYTHON") or str(ROOT / ".venv-peers/bin/python")
    if not Path(python).exists():
        raise SystemExit(
            f"no peers' interpreter at {python!r}; make it with: python -m venv .venv-peers && "
            ".venv-peers/bin/pip install -r benchmarks/perf/peers.txt (or set MLRL_PEERS_PYTHON)"
        )
    return python


def print_figure(figure: Mapping[str, object]) -> None:
    """Print a result as one JSON line, the last line of the output."""
    print(json.dumps(figure), flush=True)

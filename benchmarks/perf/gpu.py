"""Benchmarks for a GPU: decoding, FLOP utilisation of an update, and a MAGRPO step.

Models have random weights, so that nothing is downloaded. Their nuclei are wider than those of
trained ones, so that sampling costs more.
Each result is printed at once. Parts that do not fit into the remaining time are skipped, with a
message.

- Sampled tokens per second at batch 1, 32 and 256, against the time to read all weights once per
  step at the measured copy bandwidth, and against the model's own forward pass.
- Model FLOP utilisation of an update: 6 FLOP per weight and token, with shared prompts counted
  once, over the measured FLOP/s of a bfloat16 matrix product.
- One MAGRPO step of two models against `comlrl`, in bfloat16 on both sides.

    benchmarks/perf/gpu.sh [--seconds 500] [--device cuda]
"""

import argparse
import contextlib
import functools
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.perf import gpu_parts
from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import print_figure, versions
from benchmarks.perf.gpu_machine import hardware
from benchmarks.perf.gpu_parts import Rows

__all__ = ["main"]

BATCHES = (1, 32, 256)
Parts = dict[str, tuple[float, Callable[[], Rows]]]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what time allows, and print the figure as one JSON line."""
    arguments = _parse(argv)
    deadline = time.perf_counter() + arguments.seconds
    rows: Rows = []
    left_out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        sizes = gpu_parts.TINY if arguments.smoke else gpu_parts.HALF_BILLION
        gpu_parts.random_model(Path(folder), sizes)
        parts: Parts = {
            f"decoding, batch {batch}": (
                40.0,
                functools.partial(gpu_parts.decoding, folder, batch, arguments),
            )
            for batch in arguments.batches
        }
        parts |= {
            "update": (40.0, lambda: gpu_parts.update(folder, arguments)),
            "our step": (80.0, lambda: gpu_parts.our_step(folder, arguments)),
            "comlrl's step": (240.0, lambda: gpu_parts.peer_step(folder, arguments)),
        }
        later = sum(seconds for seconds, _ in parts.values())
        for name, (seconds, measure) in parts.items():
            later -= seconds
            left = deadline - time.perf_counter()
            if seconds > left:
                left_out[name] = f"needs about {seconds:.0f} s"
                continue
            with _at_most(max(seconds, left - later)):
                found = _kept(name, measure, left_out)
            rows += found
            print(json.dumps({"part": name, "rows": found}), file=sys.stderr, flush=True)
    print_figure(
        {
            "figure": "gpu",
            "title": _title(arguments),
            "work": vars(arguments),
            "rows": [*rows, *_ratio(rows)],
            "left_out": left_out,
            "versions": versions(["mlrl", "torch", "transformers", "comlrl"]),
            "hardware": hardware(arguments.device),
        }
    )


def _title(arguments: argparse.Namespace) -> str:
    device = "GPU" if arguments.device == "cuda" else "CPU"
    models = "tiny models of" if arguments.smoke else "models of 0.5B"
    return f"{device}, {models} random weights, bfloat16"


def _ratio(rows: Rows) -> Rows:
    """Return the row that compares both sides of the step, if both were measured."""
    steps = {str(row["what"]).split(", ")[-1]: row["ours"] for row in rows if "MAGRPO" in str(row)}
    if set(steps) != {"ours", "comlrl"}:
        return []
    ours, peer = (_median(steps[side]) for side in ("ours", "comlrl"))
    return [
        {
            "what": "MAGRPO step, both sides",
            "unit": "s",
            "ours": ours,
            "peer": peer,
            "peer_name": "comlrl 1.4.3",
            "ratio": round(peer / ours, 2),
        }
    ]


def _median(values: Any) -> float:  # noqa: ANN401 - of a row
    return float(values["median"])


def _kept(name: str, measure: Callable[[], Rows], left_out: dict[str, str]) -> Rows:
    """Measure a part; an error in one part does not stop the others."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - said in the figure
        left_out[name] = f"{type(error).__name__}: {error}"
        return []
    finally:
        with contextlib.suppress(RuntimeError):  # after a GPU error this call fails as well
            torch.cuda.empty_cache()


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise an error if the block takes longer than its time limit."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "Benchmarks for a GPU.",
        seconds={"type": float, "default": 500.0, "help": "time limit of all parts"},
        device={"choices": ("cuda", "cpu"), "default": "cuda"},
        batches=BATCHES,
        tasks=4,
        rounds=2,
        warmup=1,
        max_new_tokens=256,
        micro_batch_tokens=32_768,
        smoke=False,
    )


if __name__ == "__main__":
    main()

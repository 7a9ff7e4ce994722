"""Command line of the published experiments.

    python -m benchmarks.published [NAME ...] [--hours 24] [--seeds 0 1 2] [--runs runs/published]
        [--out FILE] [--smoke] [--list]

Trains every experiment with its published settings, one seed of each before the second of any, and
writes a table. When the budget ends, the run in progress stops after a checkpoint; the same command
continues it. Models and data come from the hub. `--smoke` takes a tiny model, two iterations and
data that need no download, and runs on a CPU.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.published.plans import EXPERIMENTS
from benchmarks.published.runs import command, run
from benchmarks.published.table import read_run, table, write_results
from mlrl_learners.runs.provenance import package_versions

DESCRIPTION = "Published experiments on a GPU machine."


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is left within the budget, write the results, and return the exit status."""
    arguments = _parse(argv)
    if arguments.list:
        print("\n".join(f"{name:22} {each.model}" for name, each in EXPERIMENTS.items()))
        return 0
    names = arguments.names or list(EXPERIMENTS)
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        print(
            f"unknown experiment {unknown[0]!r}: one of {', '.join(EXPERIMENTS)}", file=sys.stderr
        )
        return 2
    status = _run(arguments, names)
    found = [
        read_run(name, seed, arguments.runs / f"{name}-{seed}")
        for name in EXPERIMENTS
        for seed in arguments.seeds
    ]
    rows = [row for row in found if row is not None]
    out = arguments.out or arguments.runs / "results.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_results(rows, out, versions=package_versions())
    print(table(rows))
    return status


def _run(arguments: argparse.Namespace, names: Sequence[str]) -> int:
    deadline = time.monotonic() + 3600 * arguments.hours
    failed = 0
    for seed in arguments.seeds:
        for name in names:
            if time.monotonic() >= deadline:
                print("the budget has ended: the same command continues", file=sys.stderr)
                return 3
            run_dir = arguments.runs / f"{name}-{seed}"
            print(f"{name}, seed {seed}", file=sys.stderr, flush=True)
            words = command(EXPERIMENTS[name], seed, run_dir, smoke=arguments.smoke)
            status = run(words, deadline)
            failed += status not in (0, None)
    return 1 if failed else 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=DESCRIPTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; all by default")
    parser.add_argument("--hours", type=float, default=24.0, help="budget of this call")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/published"), help="folder of runs")
    parser.add_argument("--out", type=Path, help="result file; RUNS/results.json by default")
    parser.add_argument("--smoke", action="store_true", help="tiny models, two iterations")
    parser.add_argument("--list", action="store_true", help="print the experiments")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

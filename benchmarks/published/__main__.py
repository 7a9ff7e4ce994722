"""Command line of the published experiments.

    python -m benchmarks.published [NAME ...] [--hours 24] [--seeds 0 1 2] [--runs runs/published]
        [--out FILE] [--smoke] [--list]

Trains every experiment with its published settings, one seed of each before the second of any, adds
the runs to the stored results, and writes a table. When the budget ends, the run in progress stops
after a checkpoint; the same command continues it. Models and data come from the hub. `--smoke`
takes a tiny model, two iterations and data that need no download, runs on a CPU, and has a folder
of its own. A folder with a run of other settings is neither continued nor a result.

The exit status is 0 if all runs have ended, 1 if one has failed, 2 if the arguments cannot be used,
and 3 if the budget has ended first.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.published.configs import difference, planned_config
from benchmarks.published.plans import EXPERIMENTS
from benchmarks.published.results import ResultsError, add_results, check_results
from benchmarks.published.runs import command, run
from benchmarks.published.table import Row, read_run, table
from mlrl_learners.runs.files import CONFIG_FILE

DESCRIPTION = "Published experiments on a GPU machine."
RUNS, SMOKE_RUNS = "runs/published", "runs/published-smoke"


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
    out = arguments.out or arguments.runs / "results.json"
    try:
        check_results(out, smoke=arguments.smoke)
        status = _train(arguments, names)
        rows, removed = add_results(list(_finds(arguments)), out, smoke=arguments.smoke)
    except ResultsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for line in removed:
        print(f"removed: {line}", file=sys.stderr)
    if arguments.smoke:
        print("Smoke test with tiny random models: these are no results.\n")
    print(table(rows))
    return status


def _train(arguments: argparse.Namespace, names: Sequence[str]) -> int:
    """Train what is left within the budget, and return the exit status."""
    deadline = time.monotonic() + 3600 * arguments.hours
    failed = 0
    for seed in arguments.seeds:
        for name in names:
            status = _train_run(arguments, name, seed, deadline)
            if status is None:
                print("the budget has ended: the same command continues", file=sys.stderr)
                return 1 if failed else 3
            failed += status != 0
    return 1 if failed else 0


def _train_run(arguments: argparse.Namespace, name: str, seed: int, deadline: float) -> int | None:
    """Train a run, or what is left of it; return its status, None if the budget ended first."""
    if time.monotonic() >= deadline:
        return None
    run_dir = arguments.runs / f"{name}-{seed}"
    planned = planned_config(EXPERIMENTS[name], seed, smoke=arguments.smoke)
    if changed := difference(planned, run_dir):
        print(
            f"error: {str(run_dir)!r} holds a run of another configuration ({changed}): move it "
            "away, or choose another folder with --runs",
            file=sys.stderr,
        )
        return 2
    print(f"{name}, seed {seed}", file=sys.stderr, flush=True)
    words = command(EXPERIMENTS[name], seed, run_dir, smoke=arguments.smoke)
    return run(words, deadline)


def _finds(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield the state of each run that has the planned configuration and an evaluation."""
    for name, experiment in EXPERIMENTS.items():
        for seed in arguments.seeds:
            run_dir = arguments.runs / f"{name}-{seed}"
            planned = planned_config(experiment, seed, smoke=arguments.smoke)
            if not (run_dir / CONFIG_FILE).exists():
                continue
            if changed := difference(planned, run_dir):
                print(f"left out: {run_dir}: {changed}", file=sys.stderr)
                continue
            row = read_run(name, seed, run_dir, planned=planned.train.iterations)
            if row is not None:
                yield row


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=DESCRIPTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; all by default")
    parser.add_argument("--hours", type=float, default=24.0, help="budget of this call")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--runs",
        type=Path,
        help=f"folder of runs; {RUNS} or, with --smoke, {SMOKE_RUNS} by default",
    )
    parser.add_argument("--out", type=Path, help="result file; RUNS/results.json by default")
    parser.add_argument("--smoke", action="store_true", help="tiny models, two iterations")
    parser.add_argument("--list", action="store_true", help="print the experiments")
    arguments = parser.parse_args(argv)
    arguments.runs = arguments.runs or Path(SMOKE_RUNS if arguments.smoke else RUNS)
    return arguments


if __name__ == "__main__":
    sys.exit(main())

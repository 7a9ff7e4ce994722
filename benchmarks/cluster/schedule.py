"""Simulation of the pool's scheduling: the number of samplers that an update can use.

    python -m benchmarks.cluster.schedule [--workers 1 8 64 256 1000] [--rows 64 16 8]
        [--base-rows 64] [--json]

The pool that Ray runs use deals batches to simulated processes. An update plays 1,024 chains of two
turns with two agents and groups of four, so that each turn is answered by 8,192 rows in batches of
`--rows` rows. The next turn of a group of chains starts when all its answers are there; `levels` is
with one group, as before groups existed. With lag K, K + 1 iterations are sampled at the same time,
the oldest first. The lengths of answers are lognormal with a median of 100 tokens and a deviation
of 0.6 of their logarithm; a batch takes its longest answer, and a step of 64 rows twice as long as
a step of one. The learner needs as long for an update as 500 processes for its rollouts in batches
of 64 rows. Results are multiples of one process without lag, with batches of `--base-rows` rows.

The prediction is the mean of the bounds on list scheduling: `max(total / W, longest)` and `total /
W + longest (1 - 1 / W)` (Graham, 1966), with the longest batch of a turn for levels, and the
longest group, all its turns, for groups. With lag it is the bound of the processes, of the learner,
or an iteration alone divided by K + 1.
"""

import argparse
import json
import random
from collections.abc import Sequence
from typing import Any

from benchmarks.cluster.clock import in_groups, rollout_seconds, update_seconds

__all__ = [
    "main",
    "predicted",
    "predicted_groups",
    "predicted_lag",
    "row",
    "table",
    "turns",
]

ROWS, TURNS, MEDIAN, DEVIATION = 8192, 2, 100, 0.6
STEP_SECONDS, ROWS_OF_TWICE = 0.02, 64
LAGS = (1, 2, 4)
USUAL_ROWS = 64
LEARNER = 500  # processes whose rollouts one update keeps up with


def turns(rows: int, seed: int) -> list[list[float]]:
    """Return the seconds of each batch of each turn.

    Args:
        rows: Rows of a batch.
        seed: Seed of the lengths of answers.
    """
    draw = random.Random(seed)  # noqa: S311 - a simulation
    factor = STEP_SECONDS * (1 + rows / ROWS_OF_TWICE)
    return [
        [
            factor * max(MEDIAN * draw.lognormvariate(0, DEVIATION) for _ in range(rows))
            for _ in range(ROWS // rows)
        ]
        for _ in range(TURNS)
    ]


def predicted(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the mean of the bounds on `rollout_seconds`."""
    return sum(_mean_of_bounds(workers, sum(each), max(each)) for each in batches)


def predicted_groups(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the mean of the bounds on the rollouts of one update, in groups."""
    longest = max(sum(max(turn) for turn in group) for group in in_groups(batches))
    return _mean_of_bounds(workers, sum(map(sum, batches)), longest)


def predicted_lag(
    workers: int, batches: Sequence[Sequence[float]], lag: int, update: float
) -> float:
    """Return the seconds of an update that the processes, the learner or the lag bound.

    K + 1 iterations are sampled at the same time, each of which lasts as long as it would alone.
    """
    alone = predicted_groups(workers, batches) + update
    return max(sum(map(sum, batches)) / workers, update, alone / (lag + 1))


def _mean_of_bounds(workers: int, total: float, longest: float) -> float:
    low = max(total / workers, longest)
    return (low + total / workers + longest * (1 - 1 / workers)) / 2


def row(workers: int, rows: int, seed: int = 0, base_rows: int = USUAL_ROWS) -> dict[str, Any]:
    """Return updates a second as a multiple of one process without lag.

    Args:
        workers: Number of processes.
        rows: Rows of a batch.
        seed: Seed of the lengths of answers.
        base_rows: Rows of a batch of the one process that is compared with.
    """
    batches = turns(rows, seed)
    update = _work(USUAL_ROWS, seed) / LEARNER
    one = _work(base_rows, seed) + update
    levels = rollout_seconds(workers, batches)
    found: dict[str, Any] = {
        "samplers": workers,
        "rows a batch": rows,
        "batches a turn": ROWS // rows,
        "levels, predicted": one / (predicted(workers, batches) + update),
        "levels": one / (levels + update),
        "groups, predicted": one / (predicted_groups(workers, batches) + update),
        "groups": one / update_seconds(workers, batches, update=update),
    }
    for lag in LAGS:
        name, seconds = f"lag {lag}", predicted_lag(workers, batches, lag, update)
        found |= {
            f"{name}, predicted": one / seconds,
            name: one / update_seconds(workers, batches, lag=lag, update=update),
        }
    return {key: round(each, 1) if isinstance(each, float) else each for key, each in found.items()}


def _work(rows: int, seed: int) -> float:
    """Return the seconds that one process needs for the rollouts of an update."""
    return sum(map(sum, turns(rows, seed)))


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    names = list(found[0])
    lines = [names, ["---"] * len(names), *([str(each[name]) for name in names] for each in found)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.schedule", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64, 256, 1000])
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 16, 8])
    parser.add_argument(
        "--base-rows", type=int, default=USUAL_ROWS, help="rows a batch of the one process"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    found = [
        row(workers, rows, given.seed, given.base_rows)
        for rows in given.rows
        for workers in given.workers
    ]
    print(json.dumps(found) if given.json else table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

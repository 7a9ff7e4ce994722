"""How many samplers an update can use: the pool's scheduling, simulated with a clock of its own.

    python -m benchmarks.cluster_schedule [--workers 1 8 64 256 1000] [--rows 64 16 8] [--json]

The pool that Ray runs use deals batches to simulated processes. An update plays 1,024 chains of two
turns with two agents and groups of four, so that each turn is answered by 8,192 rows in batches of
`--rows` rows. The next turn of a group of chains starts when all its answers are there; `levels` is
with one group, as before groups existed. The lengths of answers are
lognormal with a median of 100 tokens and a deviation of 0.6 of their logarithm; a batch takes its
longest answer, and a step of 64 rows twice as long as a step of one. The learner needs as long for
an update as 500 processes for its rollouts. The prediction is the mean of the bounds on list
scheduling: `max(total / W, longest)` and `total / W + longest (1 - 1 / W)` (Graham, 1966), with the
longest batch of a turn for levels, and the longest group, all its turns, for groups.
"""

import argparse
import heapq
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlrl_learners.algorithms.team_players import MAX_GROUPS
from mlrl_learners.cluster.sampler_pool import Answer, Call, SamplerPool
from mlrl_learners.config.ray import RayConfig

__all__ = [
    "VirtualWorkers",
    "group_seconds",
    "main",
    "predicted",
    "predicted_groups",
    "rollout_seconds",
    "row",
    "table",
    "turns",
]

ROWS, TURNS, MEDIAN, DEVIATION = 8192, 2, 100, 0.6
STEP_SECONDS, ROWS_OF_TWICE = 0.02, 64
LEARNER = 500  # processes whose rollouts one update keeps up with


@dataclass
class VirtualWorkers:
    """Processes of `SamplerPool` that answer after given seconds of a simulated clock.

    Attributes:
        seconds: Duration of each batch, by its number.
        now: The clock, in seconds.
    """

    seconds: Sequence[float]
    now: float = 0.0
    _started: int = 0
    _ends: dict[int, float] = field(default_factory=dict)

    def put(self, weights: Any) -> Any:  # noqa: ANN401 - the interface of the pool
        """Return the weights."""
        return weights

    def start(self) -> int:
        """Return the number of a new process."""
        self._started += 1
        return self._started

    def ready(self, worker: int) -> int:  # noqa: ARG002
        """Return a task that has ended."""
        return self._task(0.0)

    def answer(self, worker: int, call: Call, weights: Any) -> int:  # noqa: ANN401, ARG002
        """Return the task of a batch, whose key is its number."""
        return self._task(self.seconds[int(call.key)])

    def wait(self, tasks: Sequence[int], seconds: float) -> list[int]:  # noqa: ARG002
        """Set the clock to the end of the first task, and return it."""
        first = min(tasks, key=lambda task: (self._ends[task], task))
        self.now = max(self.now, self._ends[first])
        return [first]

    def result(self, task: int) -> Answer:
        """Return an empty answer."""
        return Answer(None, 0, [[]] if task else [])

    def stop(self, worker: int) -> None:
        """End a process."""

    def _task(self, seconds: float) -> int:
        task = len(self._ends)
        self._ends[task] = self.now + seconds
        return task


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


def rollout_seconds(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the simulated seconds of the rollouts of one update that wait at every level.

    Args:
        workers: Number of processes, W.
        batches: Seconds of each batch of each turn.
    """
    total = 0.0
    for seconds in batches:
        found = VirtualWorkers(seconds)
        pool = SamplerPool(found, RayConfig(enabled=True, samplers=workers))
        pool.sample([Call(str(number), None, None) for number in range(len(seconds))])  # type: ignore[arg-type]  # no process reads the batch
        total += found.now
    return total


def group_seconds(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the simulated seconds of the rollouts of one update, in groups.

    The first batch that waits gets the first process that is free, as the pool deals them.
    """
    groups = in_groups(batches)
    free = [0.0] * workers
    waiting = [(0.0, number, 0) for number in range(len(groups))]  # sorted: a heap
    last = 0.0
    while waiting:
        ready, number, turn = heapq.heappop(waiting)
        ends = []
        for seconds in groups[number][turn]:
            start = max(ready, heapq.heappop(free))
            ends.append(start + seconds)
            heapq.heappush(free, start + seconds)
        last = max(last, *ends)
        if turn + 1 < len(groups[number]):
            heapq.heappush(waiting, (max(ends), number, turn + 1))
    return last


def in_groups(batches: Sequence[Sequence[float]]) -> list[list[list[float]]]:
    """Return the seconds of each batch of each turn of each group."""
    count = min(MAX_GROUPS, len(batches[0]))
    return [
        [list(each[k * len(each) // count : (k + 1) * len(each) // count]) for each in batches]
        for k in range(count)
    ]


def predicted(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the mean of the bounds on `rollout_seconds`."""
    return sum(_mean_of_bounds(workers, sum(each), max(each)) for each in batches)


def predicted_groups(workers: int, batches: Sequence[Sequence[float]]) -> float:
    """Return the mean of the bounds on `group_seconds`."""
    longest = max(sum(max(turn) for turn in group) for group in in_groups(batches))
    return _mean_of_bounds(workers, sum(map(sum, batches)), longest)


def _mean_of_bounds(workers: int, total: float, longest: float) -> float:
    low = max(total / workers, longest)
    return (low + total / workers + longest * (1 - 1 / workers)) / 2


def row(workers: int, rows: int, seed: int = 0) -> dict[str, Any]:
    """Return updates a second as a multiple of one process without lag."""
    batches = turns(rows, seed)
    work = sum(map(sum, turns(64, seed)))  # of one process with the usual batches
    update = work / LEARNER
    one = work + update
    levels, groups = rollout_seconds(workers, batches), group_seconds(workers, batches)
    return {
        "samplers": workers,
        "rows a batch": rows,
        "batches a turn": ROWS // rows,
        "levels, predicted": round(one / (predicted(workers, batches) + update), 1),
        "levels": round(one / (levels + update), 1),
        "groups, predicted": round(one / (predicted_groups(workers, batches) + update), 1),
        "groups": round(one / (groups + update), 1),
        # Rollouts are collected one iteration after the other, beside the updates.
        "groups, lag 1": round(one / max(groups, update), 1),
    }


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    names = list(found[0])
    lines = [names, ["---"] * len(names), *([str(each[name]) for name in names] for each in found)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster_schedule", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64, 256, 1000])
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 16, 8])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    found = [row(workers, rows, given.seed) for rows in given.rows for workers in given.workers]
    print(json.dumps(found) if given.json else table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

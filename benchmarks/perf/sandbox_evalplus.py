"""Worker with a peer of `sandbox`: the check of evalplus, in the interpreter of the peers.

Its dataset is not needed: inputs and expected values are taken from the tests.
"""

import ast
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.perf.common import Measurement, serve, versions

FAST = 0.01  # duration of a reference in seconds, from which evalplus derives its time limits


def prepare(setup: dict[str, Any]) -> tuple[Callable[..., Measurement], dict[str, object]]:
    """Start the processes that run the checks; not timed."""
    checks = setup["checks"]
    pool = ProcessPoolExecutor(setup["workers"])
    list(pool.map(check, checks[: 4 * setup["workers"]]))

    def work(**_round: int) -> Measurement:
        begun = time.perf_counter()
        passed = sum(pool.map(check, checks))
        seconds = time.perf_counter() - begun
        rate = len(checks) / seconds
        return {"seconds": seconds, "programs_per_second": rate, "passed": passed}

    return work, {"name": "evalplus", "versions": versions(["evalplus"])}


def check(one: dict[str, Any]) -> bool:
    """Return whether a program passes."""
    from evalplus.eval import PASS, untrusted_check

    inputs = [ast.literal_eval(text) for text in one["inputs"]]
    expected = [ast.literal_eval(text) for text in one["expected"]]
    status, _details = untrusted_check(
        "humaneval",
        one["code"],
        inputs,
        one["entry_point"],
        expected=expected,
        atol=0,
        ref_time=[FAST] * len(inputs),
    )
    return bool(status == PASS)


if __name__ == "__main__":
    serve(prepare)

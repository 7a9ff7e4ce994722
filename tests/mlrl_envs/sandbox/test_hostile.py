"""Hostile programs that cheat, escape or break things: none may gain anything."""

import os

import pytest

from mlrl_envs.sandbox import Limits, Program, Sandbox

LIMITS = Limits(
    wall_seconds=3, load_seconds=1.5, test_seconds=0.7, cpu_seconds=2, memory_mib=128, output_kib=16
)


@pytest.fixture(scope="module")
def programs(corpus):
    tests, right, _ = corpus

    def make(source):
        return Program(source, tests, "check", ("transform",))

    return make, make(right)


@pytest.fixture(scope="module", params=["A", pytest.param("B", marks=pytest.mark.slow)])
def tier_sandbox(request, programs):
    os.environ["MLRL_SANDBOX_TIER"] = request.param
    try:
        with Sandbox(workers=1, limits=LIMITS, minimum_tier=request.param, cache=False) as sandbox:
            assert sandbox.run(programs[1]).status == "passed"
            yield sandbox
    finally:
        del os.environ["MLRL_SANDBOX_TIER"]


def worker_of(sandbox):
    (worker,) = sandbox._all
    return worker.process.pid


def test_a_wrong_program_gains_nothing(hostile, corpus, programs, tier_sandbox, host, secret):
    name, _, statuses = hostile
    make, right = programs
    before, worker = host.state(), worker_of(tier_sandbox)

    outcome = tier_sandbox.run(make(host.fill(corpus[2][name])))

    assert outcome.status != "passed"
    assert outcome.passed < outcome.total == 8
    # Load on the machine may turn any status into a timeout, and a timeout into a cpu_limit.
    expected = [*statuses.split(","), "timeout", *(["cpu_limit"] * ("timeout" in statuses))]
    assert not statuses or outcome.status in expected
    assert outcome.cpu_seconds <= LIMITS.cpu_seconds + 1
    assert secret not in repr(outcome)
    assert host.state() == before
    assert host.visitors() == 0
    assert host.victim.poll() is None
    assert worker_of(tier_sandbox) == worker, "the worker died"
    assert tier_sandbox.run(right).status == "passed"


def test_the_corpus_is_large(corpus):
    assert len(corpus[2]) >= 250


@pytest.mark.parametrize("status", ["hostile", "protocol_violation"])
def test_no_credit_for_programs_that_attack(status, programs, tier_sandbox):
    attack = {
        "hostile": "ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
        "protocol_violation": "os.write(3, b'garbage!')",
    }[status]
    source = f"import ctypes, os\ndef transform(xs):\n    if xs == [5, -5]:\n        {attack}\n"
    outcome = tier_sandbox.run(programs[0](source + "    return sorted({x * x for x in xs})\n"))
    assert outcome.status == status
    assert outcome.passed == 0

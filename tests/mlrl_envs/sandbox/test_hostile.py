"""Nearly three hundred programs that cheat, break out or break things; none may gain anything."""

import os
import re
from pathlib import Path

import pytest

from mlrl_envs.sandbox import Limits, Program, Sandbox

TESTS = """
def check(candidate):
    assert candidate([3, 1, 2]) == [1, 4, 9]
    assert candidate([]) == []
    assert candidate([2, 2]) == [4]
    for n in range(4):
        assert candidate(list(range(n))) == [i * i for i in range(n)]
    xs = [5, -5]
    assert candidate(xs) == [25] and xs == [5, -5]
"""
RIGHT = "def transform(xs):\n    return sorted({x * x for x in xs})\n"
LIMITS = Limits(
    wall_seconds=3, load_seconds=1.5, test_seconds=0.7, cpu_seconds=2, memory_mib=128, output_kib=16
)
RAW = """
import os, struct, json, time
def raw(data):
    os.write(3, struct.pack("!I", len(data)) + data)
    time.sleep(0.02)
def reply(message):
    raw(json.dumps(message).encode())
"""
SPELLED = {
    "{RAW}": RAW,
    "{NUL}": "\0",
    "{SURROGATE}": "\ud800",
    "{BOM}": "\ufeff",
    "{CR}": "\r",
    "{FF}": "\f",
}
MANY = re.compile(r"\{MANY:(.*?):(\d+)\}", re.DOTALL)


def read_corpus():
    for path in sorted(Path(__file__).with_name("hostile").glob("*.txt")):
        for entry in path.read_text().split("\n=== ")[1:]:
            header, _, source = entry.partition("\n")
            name, _, statuses = header.partition(" -> ")
            yield pytest.param(source, statuses, id=f"{path.stem}-{name}")


def spell(source):
    for name, text in SPELLED.items():
        source = source.replace(name, text)
    return MANY.sub(lambda match: match[1] * int(match[2]), source)


def program(source):
    return Program(source, TESTS, "check", ("transform",))


@pytest.fixture(scope="module", params=["A", pytest.param("B", marks=pytest.mark.slow)])
def tier_sandbox(request):
    os.environ["MLRL_SANDBOX_TIER"] = request.param
    try:
        with Sandbox(workers=1, limits=LIMITS, minimum_tier=request.param, cache=False) as sandbox:
            assert sandbox.run(program(RIGHT)).status == "passed"
            yield sandbox
    finally:
        del os.environ["MLRL_SANDBOX_TIER"]


def worker_of(sandbox):
    (worker,) = sandbox._all
    return worker.process.pid


@pytest.mark.parametrize(("source", "statuses"), list(read_corpus()))
def test_a_wrong_program_gains_nothing(source, statuses, tier_sandbox, host, secret):
    before, worker = host.state(), worker_of(tier_sandbox)

    outcome = tier_sandbox.run(program(spell(host.fill(source))))

    assert outcome.status != "passed"
    assert outcome.passed < outcome.total == 8
    assert not statuses or outcome.status in statuses.split(",")
    assert outcome.seconds < LIMITS.wall_seconds + 1
    assert secret not in repr(outcome)
    assert host.state() == before
    assert host.visitors() == 0
    assert host.victim.poll() is None
    assert worker_of(tier_sandbox) == worker, "the worker died"
    assert tier_sandbox.run(program(RIGHT)).status == "passed"


def test_the_corpus_is_large():
    assert len(list(read_corpus())) >= 250


@pytest.mark.parametrize("status", ["hostile", "protocol_violation"])
def test_no_credit_for_programs_that_attack(status, tier_sandbox):
    attack = {
        "hostile": "ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
        "protocol_violation": "os.write(3, b'garbage!')",
    }[status]
    source = f"import ctypes, os\ndef transform(xs):\n    if xs == [5, -5]:\n        {attack}\n"
    outcome = tier_sandbox.run(program(source + "    return sorted({x * x for x in xs})\n"))
    assert outcome.status == status
    assert outcome.passed == 0

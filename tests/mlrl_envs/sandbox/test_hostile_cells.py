"""The corpus of hostile programs, run as cells: none may have effects outside its session."""

import os

import pytest

from mlrl_envs.sandbox import Limits, Sandbox

LIMITS = Limits(test_seconds=0.5, cpu_seconds=2, memory_mib=128, output_kib=16)
CELL = "{source}\ntransform([3, 1, 2])\n"


@pytest.fixture(scope="module", params=["A", pytest.param("B", marks=pytest.mark.slow)])
def sandbox(request):
    os.environ["MLRL_SANDBOX_TIER"] = request.param
    try:
        with Sandbox(workers=1, limits=LIMITS, minimum_tier=request.param) as sandbox:
            sandbox.session().run("1")
            yield sandbox
    finally:
        del os.environ["MLRL_SANDBOX_TIER"]


def test_a_hostile_cell_ends_at_most_its_interpreter(hostile, corpus, sandbox, host, secret):
    before, (worker,) = host.state(), sandbox._sessions._all
    session = sandbox.session({"kept": "text"})
    session.run("x = 1", "teammate")

    reply = session.run(CELL.format(source=host.fill(corpus[2][hostile[0]])))

    assert secret not in reply.text
    assert host.state() == before
    assert host.visitors() == 0
    assert host.victim.poll() is None
    assert {worker} == sandbox._sessions._all, "the worker died"
    assert session.run("x", "teammate").text == "1\n"
    assert session.run("6 * 7").text == "42\n" or reply.status == "ok" or reply.status == "error"
    assert sandbox.session().run("6 * 7").text == "42\n"

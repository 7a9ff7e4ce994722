"""Tests of `Sandbox`: batches, cache, copies, tiers."""

import copy
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError, InvalidArgumentError
from mlrl_envs.sandbox import Limits, Program, Sandbox, probe, run, shared_sandbox


def check(source, *assertions, **options):
    body = "\n".join(f"    {line}" for block in assertions for line in block.splitlines())
    return Program(source, f"def check(candidate):\n{body}\n", "check", ("f",), **options)


def test_helpers_that_raise_are_an_invalid_argument(sandbox):
    program = check("def f(): return 1", "assert candidate() == 1", helpers="1 / 0")
    with pytest.raises(InvalidArgumentError, match="ZeroDivisionError"):
        sandbox.run(program)
    assert sandbox.run(check("def f(): return 1", "assert candidate() == 1")).status == "passed"


def test_run_many_keeps_the_order_and_isolates_bad_items(sandbox):
    sources = ["def f(): return 1", "def f(", "import os\nos._exit(1)", "def f(): return 2"] * 3
    outcomes = sandbox.run_many(check(source, "assert candidate() == 1") for source in sources)
    statuses = [outcome.status for outcome in outcomes]
    assert statuses == ["passed", "load_error", "died", "failed"] * 3


def test_run_many_of_an_empty_list_is_empty(sandbox):
    assert sandbox.run_many([]) == []


def test_equal_programs_run_once_unless_the_cache_is_off():
    program = check("import time\ndef f(): return time.time_ns()", "assert candidate() == 1")
    with Sandbox(workers=1) as cached, Sandbox(workers=1, cache=False) as uncached:
        assert cached.run(program) is cached.run(program)
        assert uncached.run(program).tests != uncached.run(program).tests


def test_the_cache_distinguishes_limits():
    source = "import time\ndef f():\n    time.sleep(0.4)\n    return 1"
    patient = check(source, "assert candidate() == 1")
    hurried = check(source, "assert candidate() == 1", limits=Limits(test_seconds=0.1))
    with Sandbox(workers=1) as sandbox:
        assert sandbox.run(patient).status == "passed"
        assert sandbox.run(hurried).status == "timeout"
        assert sandbox.run(patient).status == "passed"


def test_pickles_and_copies_hold_the_configuration_only():
    sandbox = Sandbox(workers=3, limits=Limits(wall_seconds=7), cache=False)
    for twin in (pickle.loads(pickle.dumps(sandbox)), copy.deepcopy(sandbox)):
        assert (twin.workers, twin.limits, twin.cache) == (3, sandbox.limits, False)
        assert not twin._all


def test_a_source_too_large_to_send_does_not_load(sandbox):
    outcome = sandbox.run(check("#" * (33 << 20), "assert candidate() == 1"))
    assert outcome.status == "load_error"


def test_module_level_run_infers_style_and_entry_points():
    assert run("def f(x): return x", "assert f(1) == 1").status == "passed"
    assert run("def f(x", "assert f(1) == 1").status == "load_error"
    assert shared_sandbox() is shared_sandbox(Limits())
    shared_sandbox().close()


def test_a_tier_that_cannot_be_reached_is_an_infrastructure_error(monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", "B")
    with pytest.raises(InfraError, match="tier B"), Sandbox(minimum_tier="A") as sandbox:
        sandbox.run(check("def f(): return 1", "assert candidate() == 1"))


def test_tier_d_is_refused_unless_allowed(monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", "D")
    program = check("def f(): return 1", "assert candidate() == 1")
    with pytest.raises(InfraError, match="allow_insecure"), Sandbox() as sandbox:
        sandbox.run(program)
    with Sandbox(allow_insecure=True) as sandbox, pytest.warns(RuntimeWarning, match="tier D"):
        assert sandbox.run(program).status == "passed"


def test_tier_c_warns(monkeypatch):
    from mlrl_envs.sandbox import probing

    monkeypatch.setenv("MLRL_SANDBOX_TIER", "C")
    monkeypatch.setattr(probing, "_known", {})
    program = check("def f(): return 1", "assert candidate() == 1")
    with Sandbox() as sandbox, pytest.warns(RuntimeWarning, match="tier C"):
        assert sandbox.run(program).status == "passed"


CHECKOUT = """
from mlrl_envs.sandbox import Program, Sandbox
source = "def f():\\n    open('/tmp/note', 'w').write('x')\\n    return open('note').read()"
tests = "def check(candidate):\\n    assert candidate() == 'x'"
with Sandbox(workers=1, minimum_tier="A") as sandbox:
    print(sandbox.run(Program(source, tests, "check", ("f",))).status)
"""


@pytest.mark.skipif(probe().tier != "A", reason="below tier A there are no scratch files")
def test_programs_have_tmp_if_the_package_is_below_tmp():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        shutil.copytree(Path(mlrl_envs.__file__).parent, Path(folder) / "mlrl_envs")
        said = subprocess.run(
            [sys.executable, "-c", CHECKOUT],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
    assert said.stdout == "passed\n", said.stderr

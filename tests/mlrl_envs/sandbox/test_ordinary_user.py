"""Hostile programs in a sandbox that an unprivileged user runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mlrl_envs

NOBODY = 65534
# Imports the package without its dependencies, which an unprivileged user may be unable to read.
SCRIPT = """
import json, sys, types
package = types.ModuleType("mlrl_envs")
package.__path__, package.__file__ = [sys.argv[1]], sys.argv[1] + "/__init__.py"
sys.modules["mlrl_envs"] = package
from mlrl_envs.sandbox import Limits, Program, Sandbox, probe
tests, right, sources = json.load(sys.stdin)
limits = Limits(wall_seconds=4, load_seconds=2, test_seconds=1, cpu_seconds=3, memory_mib=128)
def program(source):
    return Program(source, tests, "check", ("transform",))
wrong = []
with Sandbox(workers=1, limits=limits, cache=False) as sandbox:
    for name, source in sources.items():
        outcome = sandbox.run(program(source))
        if outcome.status == "passed" or sandbox.run(program(right)).status != "passed":
            wrong.append([name, outcome.status])
print(json.dumps([probe().tier, wrong]))
"""


def open_to_all(path):
    folders = path.resolve().parents
    return path.exists() and all(folder.stat().st_mode & 0o001 for folder in folders)


def python_for_all():
    found = [path for path in (Path(sys.executable), Path("/usr/bin/python3")) if open_to_all(path)]
    package = Path(mlrl_envs.__file__).parent
    if not found or not open_to_all(package / "errors.py"):
        pytest.skip("no interpreter or package that any user may read")
    return str(found[0]), str(package)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("tier", "families"),
    [("A", ("exits", "introspection", "equality", "channels", "host")), ("B", ("host",))],
)
def test_hostile_programs_gain_nothing_from_an_unprivileged_user(tier, families, host, corpus):
    python, package = python_for_all()
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 10))"],
        capture_output=True,
        text=True,
        check=True,
    )
    if version.stdout.strip() != "True":
        pytest.skip("the interpreter any user may read is too old")
    tests, right, sources = corpus
    chosen = {n: host.fill(s) for n, s in sources.items() if n.startswith(families)}
    before = host.state()
    ran = subprocess.run(
        [python, "-B", "-c", SCRIPT, package],
        input=json.dumps([tests, right, chosen]),
        capture_output=True,
        text=True,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={"MLRL_SANDBOX_TIER": tier, **{k: v for k, v in os.environ.items() if "MLRL" in k}},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [tier, []]
    assert host.state() == before
    assert host.visitors() == 0
    assert host.victim.poll() is None

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOUND = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


@pytest.fixture(scope="session")
def run_peer():
    """Return a function that runs a script of this folder beside another framework.

    The framework lives in an environment of its own, see benchmarks/perf/interop.txt.
    """
    named = os.environ.get("MLRL_INTEROP_PYTHON")
    python = Path(named) if named else ROOT / ".venv-interop" / "bin" / "python"

    def run(package, script, *words, timeout=240):
        if not python.is_file():
            pytest.skip(f"no {python}: see benchmarks/perf/interop.txt")
        if subprocess.run([python, "-c", FOUND, package], check=False, timeout=60).returncode:
            pytest.skip(f"{python} has no {package}: see benchmarks/perf/interop.txt")
        done = subprocess.run(
            [python, Path(__file__).parent / script, *words],
            env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run

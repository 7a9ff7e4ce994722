"""Benchmark of the import time of `mlrl_envs`, and the number of packages of a base install.

Each import runs in a new interpreter, in alternation with `import pettingzoo`, which `mlrl_envs`
imports as well, and with no import.

    python -m benchmarks.perf.imports [--rounds 15] [--no-install]
"""

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    ROOT,
    Measurement,
    alternate,
    hardware,
    print_figure,
    spread,
    versions,
)

__all__ = ["main"]

STATEMENTS = {"mlrl_envs": "import mlrl_envs", "pettingzoo": "import pettingzoo", "bare": "pass"}
TOOLS = frozenset({"pip", "setuptools", "wheel"})


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = parse_arguments(
        argv,
        "Import time and size of a base install.",
        rounds=15,
        no_install={"action": "store_true", "help": "skip the base install"},
    )
    before = hardware()
    sides = {name: functools.partial(import_seconds, code) for name, code in STATEMENTS.items()}
    measured = alternate(sides, rounds=arguments.rounds, warmup=2)
    times = {name: spread([m["seconds"] * 1000 for m in measured[name]]) for name in measured}
    rows: list[dict[str, object]] = [
        {
            "what": "import mlrl_envs, against import pettingzoo",
            "unit": "ms",
            "ours": times["mlrl_envs"],
            "peer": times["pettingzoo"],
            "peer_name": "pettingzoo",
            "ratio": round(times["pettingzoo"]["median"] / times["mlrl_envs"]["median"], 2),
        },
    ]
    packages: list[str] = []
    if not arguments.no_install:
        packages = base_packages()
        rows.append({"what": "packages of a base install", "unit": "", "ours": len(packages)})
    print_figure(
        {
            "figure": "imports",
            "title": "Importing and installing the environments",
            "work": {"statements": STATEMENTS, "rounds": arguments.rounds},
            "rows": rows,
            "packages": packages,
            "measured": measured,
            "versions": versions(["mlrl", "pettingzoo", "gymnasium", "numpy"]),
            "hardware": before,
        }
    )


def import_seconds(statement: str, _seed: int) -> Measurement:
    """Run a statement in a new interpreter and return its duration."""
    program = (
        f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return {"seconds": float(output)}


def base_packages() -> list[str]:
    """Install the project without extras in a new environment and return its packages."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
        listed = subprocess.run(
            [python, "-m", "pip", "list", "--format", "json"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    names = [f"{row['name']}=={row['version']}" for row in json.loads(listed)]
    return sorted(name for name in names if name.split("==")[0].lower() not in TOOLS)


if __name__ == "__main__":
    main()

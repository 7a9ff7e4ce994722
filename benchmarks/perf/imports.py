"""Figure (c): import time of `mlrl_envs`, and how many packages a base install brings.

Each import runs in a fresh interpreter, in turn with `import pettingzoo` (which it must pay
anyway) and with no import at all.

    python -m benchmarks.perf.imports [--rounds 15] [--no-install]
"""

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

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
    """Measure, and print the figure as one JSON line."""
    parser = argparse.ArgumentParser(description="Import time and size of a base install.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-install", action="store_true", help="leave out the base install")
    arguments = parser.parse_args(argv)
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
    """Run a statement in a fresh interpreter and return what it took inside."""
    program = (
        f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return {"seconds": float(output)}


def base_packages() -> list[str]:
    """Install the project without extras in a fresh environment; return what came with it."""
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

"""Measure every figure; keep them as `results/<machine>.json` and as the table in `docs/`.

    python -m benchmarks.perf [NAME ...] [--table-only]

Figures that are not measured this time keep their last result.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.perf.common import ROOT, machine_name
from benchmarks.perf.table import write_page

FIGURES = ("magrpo_step", "sandbox", "imports", "steps")
RESULTS = Path(__file__).parent / "results"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named figures, all by default; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.perf", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--table-only", action="store_true", help="measure nothing")
    arguments = parser.parse_args(argv)
    if unknown := sorted(set(arguments.names) - set(FIGURES)):
        parser.error(f"unknown figure {unknown[0]!r}; known: {', '.join(FIGURES)}")
    failures = 0
    for name in () if arguments.table_only else arguments.names or FIGURES:
        failures += not _measure(name)
    write_page(RESULTS, ROOT / "docs" / "performance.md")
    return failures


def _measure(name: str) -> bool:
    print(f"== {name}", file=sys.stderr, flush=True)
    run = subprocess.run(
        [sys.executable, "-m", f"benchmarks.perf.{name}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode != 0 or not run.stdout.strip():
        print(f"{name} failed, exit status {run.returncode}", file=sys.stderr)
        return False
    line = run.stdout.strip().splitlines()[-1]
    print(line, flush=True)
    _keep(name, json.loads(line))
    return True


def _keep(name: str, figure: dict[str, object]) -> None:
    """Replace one figure in this machine's file."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{machine_name()}.json"
    figures = json.loads(path.read_text()) if path.exists() else {}
    figures[name] = figure
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())

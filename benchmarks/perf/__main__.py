"""Command line of the speed benchmarks.

    python -m benchmarks.perf [NAME ...] [--table-only] [--list]

Results are stored in `results/<machine>.json` and written as tables into `docs/performance.md`.
Benchmarks that are not run keep their last result.
"""

import argparse
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.perf.common import ROOT, machine_name
from benchmarks.perf.table import write_page

# By name: module, arguments, and approximate minutes on two idle cores.
FIGURES: dict[str, tuple[str, str, float]] = {
    "imports": ("imports", "", 1),
    "steps": ("steps", "", 0.5),
    "games": ("games", "", 1),
    "network": ("network", "", 1),
    "sandbox": ("sandbox", "", 8),
    "decoding": ("decoding", "", 2),
    "update": ("update", "", 2),
    "update_2_turns": (
        "update",
        "--prompts 1 --samples 6 --prompt-tokens 450 --added-tokens 150 --rounds 2",
        6,
    ),
    "timeline": ("timeline", "", 2),
    "scaling": ("scaling", "", 12),
    "memory": ("memory", "", 6),
    "memory_8x256": (
        "memory",
        "--peer --agents 2 --group-size 8 --max-new-tokens 256 --micro-batch-tokens 512",
        14,
    ),
    "magrpo_1x96": ("magrpo_step", "--tasks 1", 3),
    "magrpo_1x256": ("magrpo_step", "--tasks 1 --max-new-tokens 256 --rounds 2", 11),
    "magrpo_8x96": ("magrpo_step", "--tasks 8 --rounds 1", 13),
    "magrpo_8x96_2_turns": ("magrpo_step", "--tasks 8 --turns 2 --rounds 1 --warmup 0", 30),
    "magrpo_8x256": ("magrpo_step", "--tasks 8 --max-new-tokens 256 --rounds 1 --warmup 0", 24),
    "grpo_8x96": ("grpo_step", "--rounds 1", 12),
    "ippo_8x96": ("ippo_step", "--rounds 1 --warmup 0", 12),
    "story_curve": ("story_curve", "", 25),
}
RESULTS = Path(__file__).parent / "results"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, all by default; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.perf", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(FIGURES)}"
    )
    parser.add_argument("--table-only", action="store_true", help="only write the tables")
    parser.add_argument(
        "--list", action="store_true", help="list the benchmarks and their durations"
    )
    arguments = parser.parse_args(argv)
    if arguments.list:
        for name, (module, options, minutes) in FIGURES.items():
            print(f"{name:20} {minutes:4g} min   python -m benchmarks.perf.{module} {options}")
        return 0
    if unknown := sorted(set(arguments.names) - set(FIGURES)):
        parser.error(f"unknown figure {unknown[0]!r}; known: {', '.join(FIGURES)}")
    failures = 0
    for name in () if arguments.table_only else arguments.names or FIGURES:
        failures += not _measure(name)
    write_page(RESULTS, ROOT / "docs" / "performance.md")
    return failures


def _measure(name: str) -> bool:
    module, options, minutes = FIGURES[name]
    print(f"== {name}, about {minutes:g} minutes", file=sys.stderr, flush=True)
    run = subprocess.run(
        [sys.executable, "-m", f"benchmarks.perf.{module}", *options.split()],
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


def _run_facts() -> dict[str, str]:
    """Return date and commit of a measurement, with a plus if measured code was changed since."""
    code = ("mlrl_envs", "mlrl_learners", ":(glob)benchmarks/**/*.py")
    changed = _git("status", "--porcelain", "--", *code)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if changed else ""),
    }


def _git(*arguments: str) -> str:
    """Return the output of git, empty outside a repository."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def _keep(name: str, figure: dict[str, object]) -> None:
    """Replace one result in the file of this machine."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{machine_name()}.json"
    figures = json.loads(path.read_text()) if path.exists() else {}
    figures[name] = {**figure, "run": _run_facts()}
    partial = path.with_suffix(".tmp")
    partial.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())

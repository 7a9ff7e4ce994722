"""Command line: trains teams and one agent on the same tasks, and compares them.

    python -m benchmarks.teams [--tasks network puzzle negotiation functions coder-tester tools ...]
        [--methods magrpo ippo one-magrpo grpo ppo] [--seeds 0 1 2] [--runs runs/teams]
        [--gather-only] [--publish]

It may be killed at any time; the same command keeps what is complete and continues the rest.
`--publish` adds the finished runs, if any, to `benchmarks/teams/results.json`, where they replace
those of the same tasks, methods and seeds. It then writes `docs/images/teams.svg` and the tables
of `docs/results.md` and `docs/results_teams.md`.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.perf.table import between
from benchmarks.shared.curves import ROOT
from benchmarks.teams.plans import METHODS
from benchmarks.teams.published import with_published, write_published
from benchmarks.teams.results import (
    comparison_table,
    draw,
    gather,
    learning_table,
    reference_returns,
    scripts_table,
    verdict_table,
)
from benchmarks.teams.tasks import TASKS
from benchmarks.teams.training import INTERRUPTED, Job, train_all

__all__ = ["main"]

RESULTS = Path(__file__).with_name("results.json")
SUMMARY, PAGE = ROOT / "docs" / "results.md", ROOT / "docs" / "results_teams.md"
PICTURE = ROOT / "docs" / "images" / "teams.svg"


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, print the tables, and publish them if asked; return the status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.teams", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/teams"), help="folder of runs")
    parser.add_argument("--gather-only", action="store_true", help="do not train")
    parser.add_argument("--publish", action="store_true", help="write results, picture and tables")
    given = parser.parse_args(argv)
    status = 0
    if not given.gather_only:
        status = train_all(_jobs(given), given.runs)
        if status == INTERRUPTED:
            return status
    return _report(given) or status


def _jobs(given: argparse.Namespace) -> Iterator[Job]:
    for seed in given.seeds:
        for task in given.tasks:
            for name in given.methods:
                yield Job(task, name, METHODS[name], seed)


def _report(given: argparse.Namespace) -> int:
    runs = new = gather(_jobs(given), given.runs)
    if given.publish:
        runs = with_published(new, RESULTS, METHODS)
    if not runs:
        print(f"no finished runs in {str(given.runs)!r}", file=sys.stderr)
        return 1
    names = dict.fromkeys(run["task"] for run in runs)
    references = {name: reference_returns(TASKS[name]) for name in names}
    tables = {
        "scripts": scripts_table(references),
        "learning": learning_table(runs),
        "comparison": comparison_table(runs),
    }
    print("\n\n".join(tables.values()))
    if given.publish:
        if new:
            write_published(runs, RESULTS, METHODS, references=references)
        draw(runs, references, PICTURE)
        for part, content in tables.items():
            _write(PAGE, part, content)
        _write(SUMMARY, "verdicts", verdict_table(runs))
    return 0


def _write(page: Path, part: str, content: str) -> None:
    """Write a table between its markers of a page; the text around them stays."""
    text = page.read_text(encoding="utf-8")
    text = between(text, f"<!-- {part}: begin -->", f"<!-- {part}: end -->", content)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

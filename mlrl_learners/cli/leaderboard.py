"""`mlrl leaderboard`: build pages from results, check a submission."""

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from mlrl_learners.bench.leaderboard import build, check_submission, stale, write
from mlrl_learners.cli.parser import at_least, print_json, printable

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()
RESULTS, PAGES = Path("benchmarks/results"), Path("benchmarks/leaderboard")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    pages = actions.add_parser("build", help="build LEADERBOARD.md and HTML pages from results")
    pages.add_argument("results", type=Path, nargs="?", default=RESULTS, help="folder of results")
    pages.add_argument("--out", type=Path, default=PAGES, help="folder to write")
    pages.add_argument("--check", action="store_true", help="write nothing; fail where stale")
    pages.set_defaults(action=_build)
    submission = actions.add_parser("submit", help="check a result before submission")
    submission.add_argument("result", type=Path, help="result file, next to its transcripts")
    submission.add_argument(
        "--check", action="store_true", required=True, help="required: this command only checks"
    )
    submission.add_argument(
        "--sample", type=at_least(0), default=20, help="episodes per environment to score again"
    )
    submission.add_argument(
        "--seed", type=at_least(0), help="seed of the sample, to repeat a check"
    )
    submission.add_argument("--json", action="store_true", help="print problems as JSON")
    submission.set_defaults(action=_submit)


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Run the chosen action."""
    status: int = arguments.action(arguments)
    return status


def _build(arguments: argparse.Namespace) -> int:
    pages = build(arguments.results, arguments.out)
    if arguments.check:
        problems = stale(pages, arguments.out)
        for problem in problems:
            print(f"mlrl: {arguments.out / problem}", file=sys.stderr)
        if problems:
            print("mlrl: run mlrl leaderboard build", file=sys.stderr)
        return 1 if problems else 0
    write(pages, arguments.out)
    print(f"{len(pages)} pages in {arguments.out}")
    return 0


def _submit(arguments: argparse.Namespace) -> int:
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    problems = check_submission(arguments.result, sample=arguments.sample, seed=seed)
    if arguments.json:
        print_json({"result": str(arguments.result), "seed": seed, "problems": problems})
    elif problems:
        for problem in problems:
            print(f"mlrl: {printable(problem)}", file=sys.stderr)
        print(f"mlrl: --seed {seed} repeats this check", file=sys.stderr)
    else:
        print(f"{arguments.result} can be handed in; --seed {seed} repeats this check")
    return 1 if problems else 0

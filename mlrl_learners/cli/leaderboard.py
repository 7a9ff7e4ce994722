"""`mlrl leaderboard`: build the pages from results, check somebody's result."""

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from mlrl_learners.bench.leaderboard import build, check_submission, stale, write
from mlrl_learners.cli.parser import at_least, print_json

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()
RESULTS, PAGES = Path("benchmarks/results"), Path("benchmarks/leaderboard")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    pages = actions.add_parser("build", help="LEADERBOARD.md and a page, from result files")
    pages.add_argument("results", type=Path, nargs="?", default=RESULTS, help="folder of results")
    pages.add_argument("--out", type=Path, default=PAGES, help="folder of the pages")
    pages.add_argument("--check", action="store_true", help="write nothing; fail where stale")
    pages.set_defaults(action=_build)
    submission = actions.add_parser("submit", help="check a result before it is handed in")
    submission.add_argument("result", type=Path, help="a result, its transcripts beside it")
    submission.add_argument(
        "--check", action="store_true", required=True, help="the only thing this does"
    )
    submission.add_argument(
        "--sample", type=at_least(0), default=20, help="episodes an environment to score anew"
    )
    submission.add_argument(
        "--seed", type=at_least(0), help="which episodes: that of an earlier check, to repeat it"
    )
    submission.add_argument("--json", action="store_true", help="print problems as JSON")
    submission.set_defaults(action=_submit)


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Do what was asked for."""
    status: int = arguments.action(arguments)
    return status


def _build(arguments: argparse.Namespace) -> int:
    pages = build(arguments.results)
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
            print(f"mlrl: {problem}", file=sys.stderr)
        print(f"mlrl: --seed {seed} repeats this check", file=sys.stderr)
    else:
        print(f"{arguments.result} can be handed in; --seed {seed} repeats this check")
    return 1 if problems else 0

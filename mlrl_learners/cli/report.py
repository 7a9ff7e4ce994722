"""`mlrl report`: write a run as one self-contained HTML file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mlrl_learners.cli.parser import print_json
from mlrl_learners.report import read_reported, write_report
from mlrl_learners.report.sections import unreadable_lines

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "run_dir",
        type=Path,
        help="a run, finished or not, the folder of a suite, or a file of episodes",
    )
    parser.add_argument("--out", type=Path, help="HTML file; default: report.html in the folder")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Write the file and print its path."""
    stored = read_reported(arguments.run_dir)
    path = write_report(arguments.run_dir, arguments.out, stored)
    if stored.unreadable:
        print(f"mlrl: {unreadable_lines(stored)}", file=sys.stderr)
    if arguments.json:
        print_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        print(path)
    return 0

"""`mlrl export`: write episodes as conversations for other tools."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mlrl_learners.cli.parser import print_json
from mlrl_learners.interop.export import export

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("source", type=Path, help="a run directory, or a file of mlrl collect")
    parser.add_argument("--out", type=Path, required=True, help="JSONL file to write")
    parser.add_argument(
        "--filter-reward", type=float, help="keep episodes whose team return is at least this"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Write the file and print how many conversations it holds."""
    result = export(
        arguments.source, arguments.out, filter_reward=arguments.filter_reward, progress=True
    )
    if arguments.json:
        print_json({**asdict(result), "path": str(result.path)})
    else:
        left_out = f", {result.left_out} left out" if result.left_out else ""
        print(
            f"{result.conversations} conversations of {result.episodes} episodes{left_out}, "
            f"in {result.path}"
        )
        if result.unfinished:
            print(f"left out {result.unfinished} branches that a chain did not follow to the end")
    return 0

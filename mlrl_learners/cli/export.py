"""`mlrl export`: write episodes as conversations, for other people's tools."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mlrl_learners.cli.parser import print_json
from mlrl_learners.interop.export import export

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("source", type=Path, help="a run directory, or a file of mlrl collect")
    parser.add_argument("--out", type=Path, required=True, help="the JSONL file")
    parser.add_argument(
        "--filter-reward", type=float, help="keep episodes whose team return is at least this"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Write the file, and say how much is in it."""
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
            print(
                f"without {result.unfinished} lines of play that a chain did not follow to the end"
            )
    return 0

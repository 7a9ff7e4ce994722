"""`mlrl info`: print versions, hardware, and the confinement of programs on this machine."""

import argparse
import contextlib
from collections.abc import Sequence

from mlrl_envs.sandbox import probe
from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.runs.provenance import describe_environment

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Print facts about this installation and this machine."""
    with contextlib.suppress(ImportError):  # GPUs are listed only if torch is imported
        import torch  # noqa: F401
    facts = describe_environment()
    del facts["command"]
    packages = facts.pop("packages")
    confinement = probe()
    if arguments.json:
        print_json({**facts, "packages": packages, "sandbox": confinement.as_dict()})
        return 0
    print_table(("machine", ""), [(f"  {name}", _text(value)) for name, value in facts.items()])
    print()
    print_table(("packages", ""), [(f"  {name}", version) for name, version in packages.items()])
    print(f"\n{confinement}")
    return 0


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "unknown" if value is None else str(value)

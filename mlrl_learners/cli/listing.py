"""`mlrl list`: list everything that has a name, and the options of one of them."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.cli.listing_entries import Entry, entry_of, listing
from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.config.groups import OptionGroup

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ()
KINDS = (
    "environments",
    "learners",
    "actors",
    "scripts",
    "workflows",
    "suites",
    "sections",
    "presets",
)
"""Kinds of names; `opponents` and `loggers` are also names with options."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "name",
        nargs="?",
        help="an environment, learner, suite, preset, actor or section, whose options are shown, "
        f"or one of {', '.join(KINDS)}",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace, _overrides: Sequence[str]) -> int:
    """Print one line for each name, or the options of one.

    Raises:
        UnknownNameError: If there is nothing of the given name.
    """
    sections = listing()
    if arguments.name in KINDS:
        sections = {arguments.name: sections[arguments.name]}
    elif arguments.name is not None:
        return _show(entry_of(arguments.name), as_json=arguments.json)
    if arguments.json:
        print_json(
            {
                section: [{"name": name, "summary": text} for name, text in names.items()]
                for section, names in sections.items()
            }
        )
        return 0
    for section, names in sections.items():
        print_table((section, ""), [(f"  {name}", text) for name, text in names.items()])
        print()
    print("mlrl list NAME shows the options of any of these")
    return 0


def _show(entry: Entry, *, as_json: bool) -> int:
    """Print what a name stands for, and its options: name, default and description, in groups."""
    if as_json:
        found = [{**group._asdict(), "options": _as_json(group)} for group in entry.groups]
        print_json({"name": entry.name, "summary": entry.summary, "groups": found})
        return 0
    print(f"{entry.name}: {entry.summary}")
    for group in entry.groups:
        print(f"\n{group.name or 'options'}: {group.summary}")
        if not any(each.default != "" for each in group.options):
            print_table(("  name", "meaning"), [(f"  {o.name}", o.meaning) for o in group.options])
            continue
        rows = [(f"  {each.name}", _text(each.default), each.meaning) for each in group.options]
        print_table(("  option", "default", "meaning"), rows)
    return 0


def _as_json(group: OptionGroup) -> list[dict[str, Any]]:
    return [{**each._asdict(), "default": _plain(each.default)} for each in group.options]


def _plain(value: object) -> object:
    """Return a default as a JSON value; infinity becomes text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _text(value: object) -> str:
    """Return a default as YAML writes it, on one line."""
    plain = _plain(value)
    return str(plain) if isinstance(plain, str) and plain else json.dumps(plain)

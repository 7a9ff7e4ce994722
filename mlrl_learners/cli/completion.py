"""Tab completion in a shell: commands, options, and names of environments, presets and suites.

`argcomplete` (extra `completion`) talks to the shell. A shell asks for it after
`eval "$(register-python-argcomplete mlrl)"`, by running `mlrl` with `_ARGCOMPLETE` set.
"""

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator

__all__ = ["complete"]

# Kinds of names, as `mlrl list` has them, by command and argument; other arguments are paths.
NAMES = {
    "list name": ("environments", "presets", "learners", "suites"),
    "play env": ("environments",),
    "validate env": ("environments",),
    "audit env": ("environments",),
    "train source": ("presets", "learners"),
    "evaluate target": ("environments",),
    "collect env": ("environments",),
    "serve env ids": ("environments",),
    "bench run suite": ("suites",),
    "bench crossplay env": ("environments",),
}


def complete(build_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Answer a shell that asks for completions, and end the process; else do nothing.

    Args:
        build_parser: Returns the parser of all commands.
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    with contextlib.suppress(ImportError):
        import argcomplete
        from argcomplete.completers import ChoicesCompleter

        from mlrl_learners.cli.listing_entries import listing

        known, parser = listing(), build_parser()
        for place, action in _arguments(parser):
            if place in NAMES:
                names = {name: line for kind in NAMES[place] for name, line in known[kind].items()}
                action.completer = ChoicesCompleter(names)  # type: ignore[attr-defined]
        argcomplete.autocomplete(parser)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield the arguments of all commands with the words of their command and their name."""
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                yield from _arguments(command)
        else:
            yield f"{parser.prog} {action.dest}".removeprefix("mlrl "), action

"""Command-line arguments of the benchmark scripts."""

import argparse
from collections.abc import Sequence
from typing import Any

__all__ = ["parse_arguments"]

HELP = {
    "rounds": "measured rounds per side",
    "warmup": "unmeasured rounds per side before the first measured round",
    "tasks": "tasks per step",
    "group_size": "answers per prompt",
    "samples": "answers per prompt",
    "max_new_tokens": "longest answer, in tokens",
    "precisions": "data types to measure",
    "picture": "file of the picture",
    "smoke": "use a tiny random model, to check that the script runs",
}


def parse_arguments(
    argv: Sequence[str] | None,
    description: str,
    **options: Any,  # noqa: ANN401 - the type of an option follows from its default
) -> argparse.Namespace:
    """Parse the arguments of a script.

    Args:
        argv: Words of the command line; None for those of this process.
        description: One line about the script.
        **options: Default of each option. False makes a flag, a list an option with several values,
            and a dict is passed to `ArgumentParser.add_argument`. The type is that of the default.
    """
    parser = argparse.ArgumentParser(description=description)
    for name, default in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **_keywords(name, default))
    return parser.parse_args(argv)


def _keywords(name: str, default: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    if isinstance(default, dict):
        return {"help": HELP.get(name), **default}
    if default is False:
        return {"action": "store_true", "help": HELP.get(name)}
    is_list = isinstance(default, list | tuple)
    return {
        "type": type(default[0] if is_list else default),
        "nargs": "+" if is_list else None,
        "default": default,
        "help": HELP.get(name),
    }

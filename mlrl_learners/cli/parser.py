"""Shared parts of the commands: parser with one-line errors, tables, JSON and printable text."""

import argparse
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mlrl_learners.errors import ConfigError, UnknownNameError, unknown_name
from mlrl_learners.loggers.json_text import json_text

__all__ = [
    "Parser",
    "UnknownOptionError",
    "at_least",
    "print_json",
    "print_table",
    "printable",
    "split_words",
]


class UnknownOptionError(UnknownNameError):
    """An option that a command does not have.

    Args:
        option: The option, with its dashes.
        known: Options of the command.
    """

    def __init__(self, option: str, known: Sequence[str]) -> None:
        super().__init__(str(unknown_name("option", option, known)))
        self.option, self.known = option, known


class Parser(argparse.ArgumentParser):
    """Argument parser that raises `ConfigError` and suggests the nearest known option."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of ArgumentParser
        super().__init__(**{"allow_abbrev": False, **options})

    def parse_known_args(  # type: ignore[override]  # one overload of three is enough here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; unknown arguments raise an error."""
        if args is not None and not self._subparsers:  # before a missing argument is reported
            self._check_options(args)
        parsed, left = super().parse_known_args(args, namespace)
        for word in left:
            if word.startswith("-"):
                raise self._unknown(word)
            raise ConfigError(f"unexpected argument {word!r}; see {self.prog} --help")
        return parsed, left

    def _check_options(self, words: Sequence[str]) -> None:
        for word in words:
            if word == "--":
                return
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                raise self._unknown(word)

    def _unknown(self, word: str) -> UnknownOptionError:
        name = word.partition("=")[0]
        known = [each for each in self._option_string_actions if each.startswith("--")]
        return UnknownOptionError(name, known)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        raise ConfigError(f"{message}; see {self.prog} --help")


def at_least(low: int, high: int | None = None) -> Any:  # noqa: ANN401 - a type in the sense of argparse
    """Return a converter to an int from `low` to `high`, where `high` may be None."""

    def convert(text: str) -> int:
        number = int(text)
        if number < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, got {number}")
        if high is not None and number > high:
            raise argparse.ArgumentTypeError(f"must be at most {high}, got {number}")
        return number

    convert.__name__ = "int"  # argparse names it in "invalid int value"
    return convert


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words of a command line into arguments and configuration overrides.

    Returns:
        The arguments, and the words of `--section.key value` and `--section.key=value`.
    """
    plain: list[str] = []
    overrides: list[str] = []
    remaining = iter(words)
    for word in remaining:
        key, equals, _ = word.partition("=")
        if not (key.startswith("--") and "." in key):
            plain.append(word)
            continue
        overrides.append(word)
        if not equals:
            overrides.extend(value for value in [next(remaining, None)] if value is not None)
    return plain, overrides


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON document.

    Raises:
        ContractError: If it has a value that JSON does not know.
        NumericsError: If a number is not finite.
    """
    print(json_text(value, "--json", indent=2))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with columns padded to equal width, except the last one.

    Cells may hold text of somebody else: control characters are replaced, and newlines by spaces.
    """
    texts = [[printable(str(cell)).replace("\n", " ") for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in texts) for i in range(len(header))]
    for row in texts:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print("  ".join([*cells, row[-1]]).rstrip())


def printable(text: str) -> str:
    """Replace control characters other than newline and tab, which could change the terminal."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs") else "�"
        for char in text
    )

"""Command-line overrides of a configuration: `--key value` or `--key=value`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlrl_learners.config.options import describe_type
from mlrl_learners.errors import ConfigError

__all__ = ["parse_values", "split_overrides"]


def split_overrides(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of key and text.

    Raises:
        ConfigError: If a word is not a key, or a key has no value.
    """
    remaining = iter(words)
    for word in remaining:
        key, equals, text = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not key:
            raise ConfigError(f"expected --key value, got {word!r}")
        if not equals:
            value = next(remaining, None)
            if value is None:
                raise ConfigError(f"--{key} needs a value")
            text = value
        yield key, text


def parse_values(texts: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the text of each key to the type of the key.

    Raises:
        ConfigError: If a text does not have the type of its key, or jsonargparse is missing.
    """
    if not texts:
        return {}
    try:
        from jsonargparse import ArgumentError, ArgumentParser
    except ImportError as error:
        raise ConfigError("jsonargparse is missing: pip install 'mlrl[learners]'") from error
    values = {}
    for key, text in texts.items():
        parser = ArgumentParser(exit_on_error=False, add_help=False)
        parser.add_argument(f"--{key}", type=types[key])
        try:
            values[key] = parser.parse_args([f"--{key}={text}"])[key]
        except ArgumentError as error:
            expected = describe_type(types[key])
            raise ConfigError(f"{key} must be {expected}, got {text!r}") from error
    return values

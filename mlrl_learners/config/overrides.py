"""Command-line overrides of a configuration: `--key value` or `--key=value`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlrl_learners.config.options import accepts, describe_type
from mlrl_learners.config.yaml import parse_value
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
        ConfigError: If a text does not have the type of its key.
    """
    return {key: _typed(key, text, types[key]) for key, text in texts.items()}


def _typed(key: str, text: str, annotation: Any) -> object:  # noqa: ANN401 - a type form
    try:
        value = parse_value(text, f"--{key}")
    except ConfigError:
        value = text
    for candidate in (value, text):
        if accepts(annotation, candidate):
            return candidate
    raise ConfigError(f"{key} must be {describe_type(annotation)}, got {text!r}")

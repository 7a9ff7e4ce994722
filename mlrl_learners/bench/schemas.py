"""JSON schema checks of results and episodes from other people."""

import functools
import json
from importlib import resources
from typing import Any

from mlrl_envs.errors import MissingPackageError
from mlrl_learners.errors import ConfigError

__all__ = ["check_episode", "check_result"]

LONGEST = 200  # characters of a quoted message


def check_result(value: object, source: str) -> None:
    """Check a result against `result.schema.json`.

    Args:
        value: Content of a JSON file.
        source: Name of the file, for messages.

    Raises:
        ConfigError: If the schema is violated; the message names the place.
        MissingPackageError: If `jsonschema-rs` is missing.
    """
    _check(value, "result", f"{source} is no result")


def check_episode(value: object, source: str) -> None:
    """Check one line of a file of episodes against `episode.schema.json`.

    Args:
        value: Content of the line.
        source: Name and line of the file, for messages.

    Raises:
        ConfigError: If the schema is violated; the message names the place.
        MissingPackageError: If `jsonschema-rs` is missing.
    """
    _check(value, "episode", f"{source} is not an episode")


def _check(value: object, schema: str, verdict: str) -> None:
    validator = _validator(schema)
    if validator.is_valid(value):
        return
    found = min(validator.iter_errors(value), key=lambda error: len(error.instance_path))
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in found.instance_path)
    message = found.message if len(found.message) < LONGEST else found.message[:LONGEST] + "…"
    raise ConfigError(f"{verdict}: {place.lstrip('.') or 'it'}: {message}")


@functools.cache
def _validator(schema: str) -> Any:  # noqa: ANN401 - an optional package's class
    try:
        from jsonschema_rs import Draft202012Validator  # jsonschema takes 300 times as long
    except ImportError as error:
        raise MissingPackageError(
            "checking results needs the package 'jsonschema-rs': pip install 'mlrl[bench]'"
        ) from error
    file = resources.files("mlrl_learners.bench").joinpath(f"{schema}.schema.json")
    return Draft202012Validator(json.loads(file.read_text("utf-8")))

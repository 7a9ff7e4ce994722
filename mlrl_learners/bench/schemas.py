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
        ConfigError: If the schema is violated, which names the place, or the value is nested too
            deeply or has text that UTF-8 cannot encode.
        MissingPackageError: If `jsonschema-rs` is missing.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (
        ValueError,
        RecursionError,
    ) as error:  # half a surrogate pair: no page can show it
        raise ConfigError(f"{source} is no result: {error}") from error
    _check(value, "result", f"{source} is no result")


def check_episode(value: object, source: str) -> None:
    """Check one line of a file of episodes against `episode.schema.json`.

    Args:
        value: Content of the line; an answer may have half of a surrogate pair.
        source: Name and line of the file, for messages.

    Raises:
        ConfigError: If the schema is violated, which names the place, or the value is nested too
            deeply.
        MissingPackageError: If `jsonschema-rs` is missing.
    """
    verdict = f"{source} is not an episode"
    try:
        _check(value, "episode", verdict)
    except ConfigError as error:
        if not isinstance(error.__cause__, UnicodeEncodeError):
            raise
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        _check(json.loads(whole), "episode", verdict)


def _check(value: object, schema: str, verdict: str) -> None:
    validator = _validator(schema)
    try:
        if validator.is_valid(value):
            return
        found = min(validator.iter_errors(value), key=lambda error: len(error.instance_path))
    except ValueError as error:  # of text that is not Unicode, or of deep nesting
        raise ConfigError(f"{verdict}: {error}") from error
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in found.instance_path)
    message = found.message if len(found.message) < LONGEST else found.message[:LONGEST] + "…"
    raise ConfigError(f"{verdict}: {place.lstrip('.')}{': ' if place else ''}{message}")


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

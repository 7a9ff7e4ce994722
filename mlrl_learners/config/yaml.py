"""Reading and writing YAML with the scalars of YAML 1.2.

PyYAML follows YAML 1.1, where `off`, `no` and `on` are booleans and `1e-5` is a string. This module
resolves plain scalars by the core schema of YAML 1.2 in both directions, so that a saved
configuration loads unchanged. `inf` is accepted as another spelling of `.inf`.

Without PyYAML, JSON, a subset of YAML, is read and written.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlrl_learners.errors import ConfigError

__all__ = ["dump_yaml", "parse_value", "parse_yaml", "read_yaml"]

_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?[0-9]+[eE][-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|inf|\.(nan|NaN|NAN)", "-+.i"),
)
_PLAIN = re.compile(r"(?:[A-Za-z0-9_/+]|[-.](?=[0-9]))(?:[\w./+-]| (?=[\w]))*")
"""Scalars that are certainly one plain word, number or path."""

_CONSTRUCTORS: Mapping[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
    "int": int,
    "float": float,
    "str": str,
}


class _TwiceError(ValueError):
    """A mapping has a key twice."""


def parse_yaml(text: str, source: str = "YAML") -> Any:  # noqa: ANN401 - YAML holds anything
    """Read one YAML document.

    Args:
        text: The document.
        source: Name of the source in error messages.

    Raises:
        ConfigError: If the text is not YAML, if a mapping has a key twice, or if the text is not
            JSON and PyYAML is missing.
    """
    yaml = _import_yaml()
    try:
        if yaml is None:
            return json.loads(text)
        return yaml.load(text, Loader=_once(_with_scalars(yaml.SafeLoader)))
    except json.JSONDecodeError as error:
        fix = "PyYAML is not installed: pip install pyyaml"
        raise ConfigError(f"{source} cannot be read; {fix}") from error
    except _TwiceError as error:
        raise ConfigError(f"{source} {error}") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{source} is not valid YAML: {reason}") from error


def read_yaml(path: Path) -> Any:  # noqa: ANN401  YAML holds anything
    """Read a YAML file.

    Raises:
        ConfigError: If it is not UTF-8, and as `parse_yaml`.
    """
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 text: byte {error.start + 1} is 0x{error.object[error.start]:02x}"
        ) from error
    return parse_yaml(text, str(path))


def parse_value(text: str, source: str = "YAML") -> Any:  # noqa: ANN401
    """Read one value as `parse_yaml` does; numbers and words need no PyYAML.

    Raises:
        ConfigError: As `parse_yaml`.
    """
    if not _PLAIN.fullmatch(text):
        return parse_yaml(text, source)
    tag = next((tag for tag, pattern, _ in _SCALARS if re.fullmatch(pattern, text)), "str")
    return _CONSTRUCTORS[tag](text)


def dump_yaml(mapping: Mapping[str, Any]) -> str:
    """Write a mapping so that `parse_yaml` returns an equal one; keys keep their order."""
    yaml = _import_yaml()
    if yaml is None:
        return json.dumps(mapping, indent=2) + "\n"
    dumper = _with_scalars(yaml.SafeDumper)
    return str(yaml.dump(dict(mapping), Dumper=dumper, sort_keys=False, allow_unicode=False))


def _import_yaml() -> Any:  # noqa: ANN401 - PyYAML ships no types
    """Return PyYAML, or None where it is not installed."""
    try:
        import yaml
    except ImportError:
        return None
    return yaml


def _once(base: Any) -> Any:  # noqa: ANN401
    """Derive a loader that refuses mappings with a key twice, of which PyYAML keeps the last."""

    class Once(base):  # type: ignore[misc]  # PyYAML ships no types
        def compose_mapping_node(self, anchor: Any) -> Any:  # noqa: ANN401
            node = super().compose_mapping_node(anchor)
            seen: set[tuple[str, str]] = set()
            for key, _ in node.value:
                if isinstance(key.value, str) and (key.tag, key.value) in seen:
                    line = key.start_mark.line + 1
                    raise _TwiceError(f"has the key {key.value!r} twice, again in line {line}")
                seen.add((key.tag, str(key.value)))
            return node

    return Once


def _with_scalars(base: Any) -> Any:  # noqa: ANN401
    """Derive a loader or dumper that resolves plain scalars by YAML 1.2."""
    derived: Any = type(base.__name__, (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in _SCALARS:
        regexp = re.compile(rf"^(?:{pattern})$")
        firsts = [*first, ""] if tag == "null" else list(first)
        derived.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", regexp, firsts)
    return derived

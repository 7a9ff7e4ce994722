"""Graphs in YAML files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlrl_envs.errors import InvalidArgumentError

__all__ = ["is_graph_file", "read_graph"]

SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 1 << 20


def is_graph_file(value: object) -> bool:
    """Return whether a value names a file and not a shape."""
    return isinstance(value, str) and value.endswith(SUFFIXES)


def read_graph(path: str) -> Mapping[str, Any]:
    """Return the mapping of a workflow in a YAML file.

    Raises:
        InvalidArgumentError: If the file cannot be read, or holds no mapping.
    """
    import yaml

    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise InvalidArgumentError(f"workflow file {path!r} has more than {MAX_BYTES} bytes")
        value = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise InvalidArgumentError(f"workflow file {path!r} cannot be read: {reason}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InvalidArgumentError(f"workflow file {path!r} is no YAML: {reason}") from None
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"workflow file {path!r} must hold a mapping with shape or nodes, got {value!r}"
        )
    return value

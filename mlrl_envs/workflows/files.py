"""Graphs in YAML files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlrl_envs.errors import InvalidArgumentError

__all__ = ["is_graph_file", "read_graph", "with_graph"]

SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 1 << 20
KEYS = frozenset(("shape", "nodes"))


def is_graph_file(value: object) -> bool:
    """Return whether a value names a file and not a shape."""
    return isinstance(value, str) and value.endswith(SUFFIXES)


def with_graph(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of an environment with the graph of a workflow in place of its file.

    Raises:
        InvalidArgumentError: See `read_graph`.
    """
    found = dict(options)
    if is_graph_file(found.get("workflow")):
        found["workflow"] = dict(read_graph(found["workflow"]))
    return found


def read_graph(path: str) -> Mapping[str, Any]:
    """Return the mapping of a workflow in a YAML file.

    Raises:
        InvalidArgumentError: If the file cannot be read or holds no such mapping; the message
            quotes nothing of the file, which may hold secrets.
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
        raise InvalidArgumentError(f"workflow file {path!r} is no YAML{_place(error)}") from None
    if not isinstance(value, Mapping) or not KEYS.intersection(value):
        found = "neither" if isinstance(value, Mapping) else type(value).__name__
        raise InvalidArgumentError(
            f"workflow file {path!r} must hold a mapping with shape or nodes, got {found}"
        )
    return value


def _place(error: Exception) -> str:
    """Return where a file is wrong; a server shows it to clients, so it quotes nothing."""
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f": see line {mark.line + 1}, column {mark.column + 1}"

"""Published data of the building environments.

The published strings and houses (MIT) come from `OpenMLRL/LLM_Collab_Minecraft`, revision 9c2e006.
They are one JSON file each, in `MLRL_DATA_DIR` or given by `data_path`. The first eight rows are
`train`, the last two `eval`. The split `sample` and all tasks made from a seed need no file.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mlrl_envs.datasets.made_splits import check_split
from mlrl_envs.errors import DataNotFoundError, InvalidDataError
from mlrl_envs.types import Task

__all__ = ["TRAIN_ROWS", "read_published", "split_rows"]

TRAIN_ROWS = 8
TaskT = TypeVar("TaskT", bound=Task)


def read_published(file: str, path: str | None, parse: Callable[[Any], list[TaskT]]) -> list[TaskT]:
    """Return the published tasks.

    Args:
        file: Name of the file in `MLRL_DATA_DIR`.
        path: The file, or None.
        parse: Converts its content to tasks.

    Raises:
        DataNotFoundError: If there is no such file.
        InvalidDataError: If its content does not follow the schema.
    """
    folder = os.environ.get("MLRL_DATA_DIR", "")
    place = Path(path if path is not None else folder) / ("" if path is not None else file)
    if not (path or folder) or not place.is_file():
        tried = repr(path) if path is not None else f"MLRL_DATA_DIR/{file}"
        raise DataNotFoundError(
            f"{file} was not found in {tried}: pass data_path, or source='procedural' for tasks "
            "made from a seed, which need no file"
        )
    try:
        return parse(json.loads(place.read_text("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidDataError(f"{place.name} does not follow the schema: {error!r}") from error


def split_rows(split: str, rows: Sequence[TaskT]) -> tuple[TaskT, ...]:
    """Return the published tasks of a split.

    Raises:
        UnknownNameError: If there is no such split.
        InvalidDataError: If the split has no tasks.
    """
    check_split(split)
    parts = {"train": rows[:TRAIN_ROWS], "eval": rows[TRAIN_ROWS:], "all": rows}
    if not parts[split]:
        raise InvalidDataError(f"split {split!r} is empty: there are only {len(rows)} tasks")
    return tuple(parts[split])

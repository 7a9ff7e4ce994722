"""Locations of data sets, and splits of their rows.

Rows are searched in this order: an explicit path; `MLRL_DATA_DIR/<file>.jsonl`; an installed
package that contains the rows; the Hugging Face hub at a pinned revision, through `datasets`,
unless `HF_HUB_OFFLINE` is set. A package comes before the hub because it needs no network and its
content does not change. If an explicit path does not exist, no other location is searched.

Every data set also has the split `sample`: a few rows written for this project in the same schema,
stored in `samples/<file>.jsonl` and read by the same parser. It needs no data set.

The loaders of the data sets (`load_humaneval` and others) take `split`, the name of a split, and
`path`, a JSONL file with the rows, plain or gzipped; None searches the default locations. They
return the tasks in the order of the rows and raise the errors of `load_split`.
"""

import gzip
import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from mlrl_envs.errors import DataNotFoundError, InvalidDataError, unknown_name
from mlrl_envs.types import Task

__all__ = ["SAMPLE", "DataSource", "Row", "find_rows", "has_file", "load_split"]

SAMPLE = "sample"
SAMPLES = Path(__file__).parent / "samples"
Row = Mapping[str, Any]
TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True)
class DataSource:
    """The locations of one data set.

    Attributes:
        file: Name of its file in `MLRL_DATA_DIR`, without the suffix `.jsonl`.
        fields: Columns that every row must have.
        hub: Repository on the Hugging Face hub.
        revision: Commit of that repository.
        hub_split: Split to load from the repository.
        hub_config: Configuration of the repository, or "" if it has only one.
        package: Import name of a package that contains the rows, or "" if there is none.
        distribution: Name under which that package is installed.
        resource: Path of the rows inside the package.
    """

    file: str
    fields: tuple[str, ...]
    hub: str
    revision: str
    hub_split: str
    hub_config: str = ""
    package: str = ""
    distribution: str = ""
    resource: str = ""


def load_split(
    source: DataSource,
    parse_row: Callable[[Row], TaskT],
    *,
    split: str,
    splits: Mapping[str, Sequence[int]],
    path: str | None = None,
) -> tuple[TaskT, ...]:
    """Return the tasks of a split, in the order of its row numbers.

    Args:
        source: The locations of the rows.
        parse_row: Converts a row to a task; a top-level function, because results are cached by it.
        split: A name in `splits`, or `"sample"`.
        splits: The row numbers of each split, from 0; numbers beyond the last row are skipped.
        path: A JSONL file with the rows, plain or gzipped; None searches the default locations.

    Raises:
        UnknownNameError: If there is no such split.
        DataNotFoundError: If the rows are not found.
        InvalidDataError: If a row does not follow the schema, or the split has no rows.
    """
    if split == SAMPLE:
        return _load_sample(source, parse_row)
    if split not in splits:
        raise unknown_name("split", split, [*splits, SAMPLE])
    # The cache key contains everything that decides where the rows are found.
    places = (path, os.environ.get("MLRL_DATA_DIR", ""), os.environ.get("HF_HUB_OFFLINE", ""))
    tasks = _load_all(source, parse_row, places)
    chosen = tuple(tasks[number] for number in splits[split] if number < len(tasks))
    if not chosen:
        raise InvalidDataError(f"split {split!r} is empty: there are only {len(tasks)} rows")
    return chosen


@lru_cache(maxsize=16)
def _load_sample(source: DataSource, parse_row: Callable[[Row], TaskT]) -> tuple[TaskT, ...]:
    return _load_all(source, parse_row, (str(SAMPLES / f"{source.file}.jsonl"), "", ""))


@lru_cache(maxsize=16)
def _load_all(
    source: DataSource, parse_row: Callable[[Row], TaskT], places: tuple[str | None, str, str]
) -> tuple[TaskT, ...]:
    return tuple(parse_row(row) for row in find_rows(source, places[0]))


def find_rows(source: DataSource, path: str | None = None) -> list[Row]:
    """Return all rows of a data set from the first location that has them.

    Raises:
        DataNotFoundError: If no location has the rows; the message lists all of them.
        InvalidDataError: If a row lacks a field.
    """
    rows = _rows(source, path)
    for number, row in enumerate(rows):
        missing = [name for name in source.fields if name not in row]
        if missing:
            raise InvalidDataError(f"{source.file} row {number} lacks {', '.join(missing)}")
    return rows


def has_file(source: DataSource, path: str | None = None) -> bool:
    """Return whether the rows are read from a local file: `path`, or one in `MLRL_DATA_DIR`."""
    return path is not None or _local_file(source) is not None


def _local_file(source: DataSource) -> Path | None:
    data_dir = os.environ.get("MLRL_DATA_DIR", "")
    file = Path(data_dir) / f"{source.file}.jsonl"
    return file if data_dir and file.is_file() else None


def _rows(source: DataSource, path: str | None) -> list[Row]:
    if path is not None:
        if not Path(path).is_file():
            raise DataNotFoundError(f"no file {path!r} with the rows of {source.file}")
        return _read(Path(path))
    local = _local_file(source)
    if local is not None:
        return _read(local)
    packaged = _package_file(source)
    if packaged is not None:
        return _read(packaged)
    data_dir = os.environ.get("MLRL_DATA_DIR") or "not set"
    tried = [f"MLRL_DATA_DIR/{source.file}.jsonl (MLRL_DATA_DIR is {data_dir})"]
    if source.package:
        tried.append(f"the package {source.distribution} (pip install {source.distribution})")
    rows, reason = _from_hub(source)
    if rows is not None:
        return rows
    tried.append(f"the hub's {source.hub} ({reason})")
    raise DataNotFoundError(
        f"{source.file} was not found: pass data_path, or use one of " + "; ".join(tried)
    )


def _package_file(source: DataSource) -> Path | None:
    spec = importlib.util.find_spec(source.package) if source.package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(spec.submodule_search_locations[0]) / source.resource
    return file if file.is_file() else None


def _from_hub(source: DataSource) -> tuple[list[Row] | None, str]:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return None, "HF_HUB_OFFLINE is set"
    try:
        from datasets import load_dataset
    except ImportError:
        return None, "needs pip install 'mlrl[data]'"
    options = {"name": source.hub_config} if source.hub_config else {}
    try:
        loaded = load_dataset(
            source.hub, split=source.hub_split, revision=source.revision, **options
        )
    except Exception as error:  # noqa: BLE001  `datasets` raises errors of many types
        return None, f"{type(error).__name__} at revision {source.revision[:8]}"
    return [dict(row) for row in loaded], ""


def _read(file: Path) -> list[Row]:
    return list(_parse(file))


def _parse(file: Path) -> Iterator[Row]:
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InvalidDataError(f"{file.name} line {number} is no JSON: {error}") from error
            if not isinstance(row, dict):
                raise InvalidDataError(f"{file.name} line {number} is no JSON object")
            yield row

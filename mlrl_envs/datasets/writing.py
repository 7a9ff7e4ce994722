"""Splits of the writing data sets.

On the hub `train` and `eval` are the first thousand rows of two splits, and `all` is every row of
every split. A local file has no splits: every fifth row is `eval` and the others are `train`, so
that training and evaluation share no rows; `all` is every row.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mlrl_envs.datasets.sources import SAMPLE, DataSource, Row, has_file, load_split
from mlrl_envs.errors import InvalidDataError, unknown_name
from mlrl_envs.tasks import WritingTask

__all__ = ["load_writing"]

ALL_ROWS = {"all": range(200_000)}  # more rows than any of these data sets has
FIFTH = 5


def load_writing(
    source: DataSource,
    parse_row: Callable[[Row], WritingTask],
    *,
    split: str,
    hub_splits: Mapping[str, str],
    path: str | None = None,
) -> tuple[WritingTask, ...]:
    """Return the tasks of a split; for errors see `load_split`.

    Args:
        source: The locations of the rows; its `hub_split` is replaced.
        parse_row: Converts a row to a task.
        split: `"train"`, `"eval"`, `"all"` or `"sample"`.
        hub_splits: The hub's name of each split except the sample.
        path: A JSONL file with the rows, plain or gzipped; None searches the default locations.
    """
    if split not in (*hub_splits, SAMPLE):
        raise unknown_name("split", split, [*hub_splits, SAMPLE])
    if split == SAMPLE:
        return load_split(source, parse_row, split=SAMPLE, splits={})
    is_local = has_file(source, path)
    place = source if is_local else replace(source, hub_split=hub_splits[split])
    tasks = load_split(place, parse_row, split="all", splits=ALL_ROWS, path=path)
    if not is_local or split == "all":
        return tasks
    chosen = [n for n in range(len(tasks)) if (n % FIFTH == FIFTH - 1) == (split == "eval")]
    if not chosen:
        raise InvalidDataError(f"split {split!r} is empty: there are only {len(tasks)} rows")
    return tuple(tasks[number] for number in chosen)

"""Propositions to debate, of our own writing, each with four key points for either side.

24 in all: 16 to train, 8 to evaluate; six others are the sample. The key points are the judge's:
no agent reads them.
"""

from pathlib import Path

from mlrl_envs.datasets.sources import DataSource, Row, load_split
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import DebateTask

__all__ = ["PROPOSITIONS", "SPLITS", "load_debate", "parse_row"]

PROPOSITIONS = Path(__file__).parent / "propositions.jsonl"
SOURCE = DataSource(
    file="propositions",
    fields=("task_id", "proposition", "pro_points", "con_points"),
    hub="",
    revision="",
    hub_split="",
)
SPLITS = {"train": range(16), "eval": range(16, 24), "all": range(24)}
MAX_OWN = 100_000


def load_debate(split: str = "train", path: str | None = None) -> tuple[DebateTask, ...]:
    """Return the propositions of a split, or all of a file of the caller's.

    Args:
        split: `"train"`, `"eval"`, `"all"` or `"sample"`.
        path: A JSONL file of the caller's with the same fields; it has no splits but `sample`.

    Raises:
        UnknownNameError: If there is no such split.
        DataNotFoundError: If there is no such file.
        InvalidDataError: If a row does not follow the schema.
    """
    splits = SPLITS if path is None else dict.fromkeys(SPLITS, range(MAX_OWN))
    return load_split(SOURCE, parse_row, split=split, splits=splits, path=path or str(PROPOSITIONS))


def parse_row(row: Row) -> DebateTask:
    """Turn a row into a task.

    Raises:
        InvalidDataError: If a text is empty, or a side has no key points.
    """
    points = []
    for side in ("pro_points", "con_points"):
        if not isinstance(row[side], list) or not all(_is_text(point) for point in row[side]):
            raise InvalidDataError(f"{row['task_id']}: {side} must be a list of texts")
        if not row[side]:
            raise InvalidDataError(f"{row['task_id']}: {side} must hold at least one key point")
        points.append(tuple(row[side]))
    if not _is_text(row["proposition"]):
        raise InvalidDataError(f"{row['task_id']}: proposition must be a text")
    return DebateTask(str(row["task_id"]), row["proposition"].strip(), *points)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())

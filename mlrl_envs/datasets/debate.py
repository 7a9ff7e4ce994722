"""Propositions to debate, written for this project, each with key points for both sides.

24 are written one by one, 16 for training and 8 for evaluation; the others are made from topics
(`mlrl_envs.datasets.propositions`): 2304 for training and 576, about other topics, for evaluation.
The sample has six others. No agent reads the key points, nor the other words that go with a topic;
they are used for scoring.
"""

from pathlib import Path

from mlrl_envs.datasets.propositions import load_topics, make_propositions
from mlrl_envs.datasets.sources import SAMPLE, DataSource, Row, load_split
from mlrl_envs.datasets.story import load_words
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import DebateTask

__all__ = ["PROPOSITIONS", "SPLITS", "contrast_tasks", "load_debate", "parse_row"]

WORDS = Path(__file__).parent / "debate_words.txt"
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


def load_debate(
    split: str = "train", path: str | None = None, vocabulary: str = "points"
) -> tuple[DebateTask, ...]:
    """Return the propositions of a split, or all propositions of a file; see `sources`.

    Args:
        split: `"train"`, `"eval"`, `"all"` or `"sample"`.
        path: A JSONL file with the same fields; all its splits except `sample` are the whole file.
        vocabulary: `"topic"` adds words of the topic's field to propositions made from topics.
    """
    if path is not None:
        whole = dict.fromkeys(SPLITS, range(MAX_OWN))
        return load_split(SOURCE, parse_row, split=split, splits=whole, path=path)
    written = load_split(SOURCE, parse_row, split=split, splits=SPLITS, path=str(PROPOSITIONS))
    names = {"all": ("train", "eval"), SAMPLE: ()}.get(split, (split,))
    return (*written, *(task for name in names for task in make_propositions(name, vocabulary)))


def contrast_tasks(vocabulary: str = "points") -> tuple[DebateTask, ...]:
    """Return one proposition for each set of key points, of all splits.

    Args:
        vocabulary: The same as in `load_debate`.
    """
    written = load_split(SOURCE, parse_row, split="all", splits=SPLITS, path=str(PROPOSITIONS))
    return (*written, *load_debate(SAMPLE), *load_topics(vocabulary))


def parse_row(row: Row) -> DebateTask:
    """Convert a row to a task.

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
    task_id = str(row["task_id"])
    words = load_words(WORDS).get(task_id, ())
    return DebateTask(task_id, row["proposition"].strip(), points[0], points[1], words)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())

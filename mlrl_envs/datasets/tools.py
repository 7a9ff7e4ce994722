"""Tool tasks: generated from a seed, or own questions and documents from files.

Of a generated task the key (kind, level, split, seed, number) decides everything, equal in every
process and every version of Python. `eval` shares no name, no number and no answer with the other
splits, see `tool_world`. Answers are computed, and stand in nothing that agents are told.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import overload

from mlrl_envs.datasets.sources import SAMPLE, DataSource, Row, load_split
from mlrl_envs.datasets.tool_archives import ARCHIVE_KINDS
from mlrl_envs.datasets.tool_lookups import LOOKUP_KINDS
from mlrl_envs.datasets.tool_tables import TABLE_KINDS
from mlrl_envs.datasets.tool_world import World, belongs
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError
from mlrl_envs.tasks import Document, ToolEvidence, ToolTask

__all__ = [
    "KINDS",
    "LEVELS",
    "SIZES",
    "GeneratedTasks",
    "load_corpus",
    "load_questions",
    "make_task",
    "parse_row",
]

KINDS = {**ARCHIVE_KINDS, **LOOKUP_KINDS, **TABLE_KINDS}
LEVELS = (1, 2, 3)
SIZES = {"train": 1000, "eval": 200, SAMPLE: 10}
SMALL = 9  # smaller answers are too easy to guess
_ROWS = DataSource(
    file="tools",
    fields=("task_id", "question", "briefs", "evidence", "answer"),
    hub="",
    revision="",
    hub_split="",
)


@dataclass(frozen=True)
class GeneratedTasks(Sequence[ToolTask]):
    """The generated tasks of one or more splits; each is made when it is first asked for.

    Attributes:
        sizes: Splits and numbers of tasks.
        seed: Seed of the tasks.
        kinds: Some of `KINDS`, used in turn.
        levels: Some of `LEVELS`, used in turn.
    """

    sizes: tuple[tuple[str, int], ...]
    seed: int
    kinds: tuple[str, ...]
    levels: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of tasks."""
        return sum(size for _, size in self.sizes)

    @overload
    def __getitem__(self, place: int) -> ToolTask: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ToolTask, ...]: ...
    def __getitem__(self, place: int | slice) -> ToolTask | tuple[ToolTask, ...]:
        """Return a task by its place, or several."""
        if isinstance(place, slice):
            return tuple(self[number] for number in range(len(self))[place])
        number = range(len(self))[place]
        for split, size in self.sizes:  # noqa: B007  the split that the number falls into
            if number < size:
                break
            number -= size
        kind = self.kinds[number % len(self.kinds)]
        level = self.levels[number // len(self.kinds) % len(self.levels)]
        return make_task(split, seed=self.seed, number=number, kind=kind, level=level)


@lru_cache(maxsize=4096)
def make_task(split: str, *, seed: int, number: int, kind: str, level: int) -> ToolTask:
    """Return the generated task of a key.

    Args:
        split: `"train"`, `"eval"` or `"sample"`.
        seed: Seed of the tasks.
        number: Place of the task in its split.
        kind: One of `KINDS`.
        level: One of `LEVELS`.
    """
    task_id = f"tools/{kind}/{level}/{split}/{seed}/{number}"
    draws = (KINDS[kind](World(f"{task_id}/{draw}", split), level) for draw in count())
    return replace(next(task for task in draws if _is_fair(task, split)), task_id=task_id)


def _is_fair(task: ToolTask, split: str) -> bool:
    """Return whether an answer belongs to the split, is hard to guess, and is not told."""
    if task.rivals:
        return True
    told = [task.question, *dict(task.briefs).values(), *(d.text for d in task.documents)]
    return (
        float(task.answer) > SMALL
        and belongs(task.answer, split)
        and task.answer not in " ".join(told)
        and all(item.twin != task.answer for item in task.evidence)
    )


def load_questions(path: str) -> tuple[ToolTask, ...]:
    """Return own questions from a JSONL file, plain or gzipped."""
    rows = range(10**6)
    return load_split(_ROWS, parse_row, split="all", splits={"all": rows}, path=path)


def parse_row(row: Row) -> ToolTask:
    """Convert a row to a task; `files`, `twin_files`, `documents` and `rivals` may be missing.

    Raises:
        InvalidDataError: If a field has the wrong type, or no evidence is needed.
    """
    try:
        if not row["evidence"]:
            raise TypeError("evidence is empty")
        return ToolTask(
            task_id=str(row["task_id"]),
            question=str(row["question"]),
            briefs=_pairs(row["briefs"]),
            evidence=tuple(_read_evidence(item) for item in row["evidence"]),
            answer=str(row["answer"]),
            documents=tuple(map(_read_document, row.get("documents", ()))),
            files=_pairs(row.get("files", {})),
            twin_files=_pairs(row.get("twin_files", {})),
            rivals=tuple(map(str, row.get("rivals", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidDataError(f"{row['task_id']} does not follow the schema: {error!r}") from error


@lru_cache(maxsize=8)
def load_corpus(path: str) -> tuple[Document, ...]:
    """Return the documents of a JSONL file with `id`, `title` and `text`.

    Raises:
        InvalidArgumentError: If the file does not exist.
        InvalidDataError: If a line is not a document, or two documents have the same id.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidArgumentError(f"corpus_path: there is no file {path!r}")
    documents = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        try:
            documents.append(_read_document(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidDataError(
                f"{file.name} line {number} is not a document with id, title and text: {error!r}"
            ) from error
    if len({document.id for document in documents}) != len(documents):
        raise InvalidDataError(f"{file.name}: two documents have the same id")
    return tuple(documents)


def _read_document(row: Mapping[str, object]) -> Document:
    return Document(str(row["id"]), str(row["title"]), str(row["text"]))


def _pairs(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(text)) for name, text in texts.items())


def _read_evidence(item: Mapping[str, object]) -> ToolEvidence:
    needs = item["needs"]
    if not isinstance(needs, list):
        raise TypeError("needs is a list")
    return ToolEvidence(
        agent=str(item["agent"]),
        tool=str(item["tool"]),
        parameters=json.dumps(item["parameters"]),
        needs=tuple(map(str, needs)),
        shows=str(item["shows"]),
        twin=str(item.get("twin", "")),
    )

"""Questions that require tools, and the archive of the search tool; written for this project.

There are five kinds of questions, each with separate information for the two agents: the weight of
a cargo (search, calculator), boxes delivered (Python on a file), the signal of a lighthouse
(search, Python), the master of a foundry (two searches), the value of a tank (a file, calculator).
Names are invented, so that no model knows an answer. Splits: train 0-19, eval 20-29; the sample has
eight other rows.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from mlrl_envs.datasets.sources import DataSource, Row, load_split
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError
from mlrl_envs.tasks import ToolEvidence, ToolTask
from mlrl_envs.tools.search import Document

__all__ = ["SOURCE", "SPLITS", "load_corpus", "load_tools", "parse_row"]

SOURCE = DataSource(
    file="tools",
    fields=("task_id", "question", "briefs", "files", "twin_files", "evidence", "answer"),
    hub="",
    revision="",
    hub_split="",
    package="mlrl_envs",
    distribution="mlrl",
    resource="datasets/tools.jsonl",
)
SPLITS = {"train": range(20), "eval": range(20, 30), "all": range(30)}
CORPUS = Path(__file__).parent / "tools_corpus.jsonl"


def load_tools(split: str = "train", path: str | None = None) -> tuple[ToolTask, ...]:
    """Return the tasks of `train`, `eval`, `all` or `sample`; see `sources`."""
    return load_split(SOURCE, parse_row, split=split, splits=SPLITS, path=path)


def parse_row(row: Row) -> ToolTask:
    """Convert a row to a task.

    Raises:
        InvalidDataError: If a field has the wrong type.
    """
    try:
        return ToolTask(
            task_id=str(row["task_id"]),
            question=str(row["question"]),
            briefs=_pairs(row["briefs"]),
            files=_pairs(row["files"]),
            twin_files=_pairs(row["twin_files"]),
            evidence=tuple(_read_evidence(item) for item in row["evidence"]),
            answer=str(row["answer"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidDataError(f"{row['task_id']} does not follow the schema: {error!r}") from error


@lru_cache(maxsize=8)
def load_corpus(path: str | None = None) -> tuple[Document, ...]:
    """Return the documents of a JSONL file with `id`, `title` and `text`.

    Args:
        path: The file; None reads the built-in archive.

    Raises:
        InvalidArgumentError: If the file does not exist.
        InvalidDataError: If a line is not a document, or two documents have the same id.
    """
    file = CORPUS if path is None else Path(path)
    if not file.is_file():
        raise InvalidArgumentError(f"corpus_path: there is no file {path!r}")
    documents = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            documents.append(Document(str(row["id"]), str(row["title"]), str(row["text"])))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidDataError(
                f"{file.name} line {number} is not a document with id, title and text: {error!r}"
            ) from error
    if len({document.id for document in documents}) != len(documents):
        raise InvalidDataError(f"{file.name}: two documents have the same id")
    return tuple(documents)


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
        twin=str(item["twin"]),
    )

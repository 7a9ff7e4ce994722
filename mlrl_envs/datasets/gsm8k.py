"""GSM8K: 8792 school word problems with worked answers (MIT, OpenAI 2021).

Rows come from `openai/gsm8k`, configuration `main`: 7473 of its train split, then 1319 of its test
split; a local file has them in the same order. `train` and `eval` (also called `test`) are these
two, `all` both. The answer follows `####`; calculator annotations (`<<2*3=6>>`) are removed from
the solution.

Source: K. Cobbe et al., "Training Verifiers to Solve Math Word Problems", arXiv:2110.14168.
"""

import dataclasses
import re

from mlrl_envs.datasets.sources import SAMPLE, DataSource, Row, load_split
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.parsing.numbers import format_number, read_number
from mlrl_envs.tasks import MathTask

__all__ = ["SOURCE", "SPLITS", "load_gsm8k", "parse_row"]

SOURCE = DataSource(
    file="gsm8k",
    fields=("question", "answer"),
    hub="openai/gsm8k",
    revision="e53f048856ff4f594e959d75785d2c2d37b678ee",
    hub_split="train+test",
    hub_config="main",
)
TRAIN, EVAL = range(7473), range(7473, 8792)
SPLITS = {"train": TRAIN, "eval": EVAL, "test": EVAL, "all": range(8792)}

_NOTE = re.compile(r"<<[^<>]*>>")


def load_gsm8k(split: str = "train", path: str | None = None) -> tuple[MathTask, ...]:
    """Return the tasks of `train`, `eval` (or `test`), `all` or `sample`; see `sources`."""
    tasks = load_split(SOURCE, parse_row, split=split, splits=SPLITS, path=path)
    if split == SAMPLE:
        return tasks
    numbered = zip(SPLITS[split], tasks, strict=False)  # a shorter file ends its last split early
    return tuple(dataclasses.replace(task, task_id=f"gsm8k/{n}") for n, task in numbered)


def parse_row(row: Row) -> MathTask:
    """Convert a row to a task; only rows of the sample have an id.

    Raises:
        InvalidDataError: If no number follows `####`.
    """
    question = str(row["question"]).strip()
    solution, mark, gold = str(row["answer"]).rpartition("####")
    answer = read_number(gold) if mark else None
    if answer is None:
        raise InvalidDataError(f"gsm8k has no number behind #### for {question[:60]!r}")
    return MathTask(
        str(row.get("task_id", "")),
        question,
        format_number(answer),
        _NOTE.sub("", solution).strip(),
    )

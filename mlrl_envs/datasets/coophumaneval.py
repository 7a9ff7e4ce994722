"""CoopHumanEval: 82 functions whose work can be shared (Apache-2.0; 16 from HumanEval, MIT).

Rows come from `OpenMLRL/CoopHumanEval`. Splits are row ranges as published, train 16-81 and eval
0-15, without the rows whose tests contradict their docstring; `all` has every row.

The data has no solutions. If a file `coophumaneval_reference.py` is in the same directory as the
rows, its functions with the names of the entry points are used as solutions. The file is parsed,
not executed.

Source: https://huggingface.co/datasets/OpenMLRL/CoopHumanEval. The revision is not pinned; a copy
with the SHA-256 3d2d7bba94b5a2ce14644eb12f9f76aabe4eff93c0d97940f9eb946d13983cfa was checked.
"""

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from mlrl_envs.datasets.docstring import public_examples
from mlrl_envs.datasets.problems import (
    count_assertions,
    definitions,
    prelude_of,
    solutions_in,
    source_of,
)
from mlrl_envs.datasets.sources import SAMPLE, SAMPLES, DataSource, Row, load_split
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import CodeTask

__all__ = ["LEFT_OUT", "REFERENCE_FILE", "SOURCE", "SPLITS", "load_coophumaneval", "parse_row"]

SOURCE = DataSource(
    file="CoopHumanEval",
    fields=("task_id", "prompt", "test", "entry_point"),
    hub="OpenMLRL/CoopHumanEval",
    revision="main",
    hub_split="test",
)
REFERENCE_FILE = "coophumaneval_reference.py"

# Rows whose tests contradict their docstring; they are in `all` only and have no reference.
LEFT_OUT = {
    2: "the docstring asks for mm-dd-yyyy, two tests want 15-01-2023 and 29-02-2024 to be valid",
    12: "45 = 3*3*5, 12 = 2*2*3 and 105 = 3*5*7 are products of three primes, tests want False",
    30: "11 is the first odd number with an even digit sum, examples and tests begin with 13",
    44: "('test', 'tset') is a mirrored pair, the second example and test leave it out",
    45: "the ASCII sum of 'hi' is 209 = 11*19, the first example and test take it for a prime",
    50: "ten angles of 140 degrees sum to 1400, a polygon needs 1440, the last test wants True",
    54: "the examples and tests skip the square and palindrome 676",
}
SPLITS = {
    "train": tuple(row for row in range(16, 82) if row not in LEFT_OUT),
    "eval": tuple(row for row in range(16) if row not in LEFT_OUT),
    "all": range(82),
}
_LEFT_OUT_IDS = frozenset(f"CoopHumanEval/{row}" for row in LEFT_OUT)


def load_coophumaneval(split: str = "train", path: str | None = None) -> tuple[CodeTask, ...]:
    """Return the tasks of `train`, `eval`, `all` or `sample`; see `sources`."""
    tasks = load_split(SOURCE, parse_row, split=split, splits=SPLITS, path=path)
    solutions = _solutions_beside(_rows_file(split, path))
    return tuple(
        replace(task, solution=solutions.get(task.entry_point))
        if task.task_id not in _LEFT_OUT_IDS
        else task
        for task in tasks
    )


def parse_row(row: Row) -> CodeTask:
    """Convert a row to a task without a solution.

    Raises:
        InvalidDataError: If the prompt or the tests do not parse.
    """
    task_id, name = str(row["task_id"]), str(row["entry_point"])
    try:
        prelude = prelude_of(row["prompt"], name)
        num_tests = count_assertions(row["test"])
    except SyntaxError as error:
        raise InvalidDataError(f"{task_id} does not parse: {error}") from error
    examples = public_examples(row["prompt"], name)
    return CodeTask(
        task_id=task_id,
        prompt=row["prompt"],
        entry_point=name,
        prelude=source_of(prelude),
        helper_names=definitions(prelude),
        public_tests=examples,
        hidden_tests=f"{row['test']}\n\ncheck({name})",
        num_hidden_tests=num_tests,
    )


def _rows_file(split: str, path: str | None) -> Path:
    if split == SAMPLE:
        return SAMPLES / f"{SOURCE.file}.jsonl"
    return Path(path or Path(os.environ.get("MLRL_DATA_DIR", "")) / f"{SOURCE.file}.jsonl")


def _solutions_beside(rows: Path) -> dict[str, str]:
    file = rows.with_name(REFERENCE_FILE)
    return _read_solutions(file) if rows.is_file() and file.is_file() else {}


@lru_cache(maxsize=4)
def _read_solutions(file: Path) -> dict[str, str]:
    try:
        return solutions_in(file.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise InvalidDataError(f"{file.name} does not parse: {error}") from error

import json
import os
import shutil
from pathlib import Path

import pytest

from mlrl_envs.datasets.coophumaneval import LEFT_OUT, REFERENCE_FILE, SPLITS, load_coophumaneval
from mlrl_envs.datasets.sources import SAMPLES
from mlrl_envs.errors import InvalidDataError

ROWS = Path(os.environ.get("MLRL_DATA_DIR", "nowhere")) / "CoopHumanEval.jsonl"
needs_data = pytest.mark.skipif(not ROWS.is_file(), reason="MLRL_DATA_DIR has no CoopHumanEval")


def test_splits_are_the_published_rows_without_those_left_out():
    assert set(SPLITS["train"]) == set(range(16, 82)) - {30, 44, 45, 50, 54}
    assert set(SPLITS["eval"]) == set(range(16)) - {2, 12}
    assert set(SPLITS["all"]) == set(range(82))


def test_each_row_left_out_has_its_reason():
    assert set(LEFT_OUT) == {2, 12, 30, 44, 45, 50, 54}
    assert all(LEFT_OUT.values())


@needs_data
def test_every_row_is_loaded_and_all_assertions_counted():
    tasks = load_coophumaneval("all")
    assert [task.task_id for task in tasks] == [f"CoopHumanEval/{n}" for n in range(82)]
    assert sum(task.num_hidden_tests for task in tasks) == 419
    assert all(task.public_tests for task in tasks)
    assert tasks[15].prelude == "from typing import List"
    assert len(tasks[14].public_tests) == 6


@needs_data
def test_rows_without_a_right_answer_have_no_reference():
    tasks = load_coophumaneval("all")
    without = {n for n, task in enumerate(tasks) if task.solution is None}
    beside = ROWS.with_name(REFERENCE_FILE).is_file()
    assert without == (set(LEFT_OUT) if beside else set(range(82)))


@needs_data
@pytest.mark.parametrize("row", sorted(set(range(82)) - set(LEFT_OUT)))
def test_solution_passes_every_public_test(row):
    task = load_coophumaneval("all")[row]
    if task.solution is None:
        pytest.skip(f"no {REFERENCE_FILE} beside the rows")
    scope = {}
    exec(f"{task.prelude}\n\n{task.solution}", scope)
    for test in task.public_tests:
        exec(test, scope)


def test_sample_has_a_solution_for_every_row():
    tasks = load_coophumaneval("sample")
    assert len(tasks) == 8
    assert all(task.solution for task in tasks)


def test_solutions_are_read_from_beside_the_rows_only(tmp_path):
    rows = tmp_path / "rows.jsonl"
    shutil.copy(SAMPLES / "CoopHumanEval.jsonl", rows)
    assert [task.solution for task in load_coophumaneval("all", str(rows))] == [None] * 8
    (tmp_path / REFERENCE_FILE).write_text("def is_stepped_word(word):\n    return True\n")
    solutions = [task.solution for task in load_coophumaneval("all", str(rows))]
    assert [text for text in solutions if text] == ["def is_stepped_word(word):\n    return True"]


def test_solutions_that_do_not_parse_are_named(tmp_path):
    shutil.copy(SAMPLES / "CoopHumanEval.jsonl", tmp_path / "rows.jsonl")
    (tmp_path / REFERENCE_FILE).write_text("def f(:")
    with pytest.raises(InvalidDataError, match=f"{REFERENCE_FILE} does not parse"):
        load_coophumaneval("all", str(tmp_path / "rows.jsonl"))


def test_row_that_does_not_parse_is_named(tmp_path):
    row = {"task_id": "x/1", "prompt": "def f(", "test": "", "entry_point": "f"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    with pytest.raises(InvalidDataError, match="x/1 does not parse"):
        load_coophumaneval("all", str(tmp_path / "rows.jsonl"))

import ast
import json
import os
from pathlib import Path

import pytest

from mlrl_envs.datasets.mbpp import SOURCES, SPLITS, load_mbpp, parse_row
from mlrl_envs.errors import InvalidDataError, UnknownNameError

FOLDER = Path(os.environ.get("MLRL_DATA_DIR", "nowhere"))
SIZES = {"full": 974, "sanitized": 427}
needs_data = pytest.mark.skipif(
    not all((FOLDER / f"{source.file}.jsonl").is_file() for source in SOURCES.values()),
    reason="MLRL_DATA_DIR has no MBPP",
)
variants = pytest.mark.parametrize("variant", SIZES)


def _by_number(variant="full"):
    return {int(task.task_id.split("/")[1]): task for task in load_mbpp("all", None, variant)}


@needs_data
@variants
def test_every_row_is_loaded(variant):
    assert len(_by_number(variant)) == SIZES[variant]


@needs_data
@variants
def test_splits_are_the_published_rows_and_the_data_sets_own(variant):
    tasks = load_mbpp("all", None, variant)
    assert load_mbpp("train", None, variant) == tasks[15:65]
    assert load_mbpp("eval", None, variant) == tasks[:15]
    numbers = {
        name: [int(task.task_id.split("/")[1]) for task in load_mbpp(name, None, variant)]
        for name in ("prompt", "test", "validation", "finetune")
    }
    for name, low, high in (
        ("prompt", 1, 10),
        ("test", 11, 510),
        ("validation", 511, 600),
        ("finetune", 601, 974),
    ):
        assert low <= min(numbers[name]) <= max(numbers[name]) <= high
    assert sum(map(len, numbers.values())) == SIZES[variant]


@variants
def test_every_split_has_its_name_in_both_variants(variant):
    assert set(SPLITS[variant]) == set(SPLITS["full"])
    with pytest.raises(UnknownNameError, match="did you mean 'finetune'"):
        load_mbpp("finetun", None, variant)


@needs_data
@variants
def test_entry_point_is_called_by_every_test_and_defined_by_the_solution(variant):
    for task in _by_number(variant).values():
        for test in ast.parse(task.hidden_tests).body:
            names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
            assert task.entry_point in names
        assert f"def {task.entry_point}(" in task.solution


@needs_data
def test_odd_rows_are_read_as_their_tests_mean_them():
    tasks = _by_number()
    assert tasks[126].entry_point == "sum"
    assert tasks[912].entry_point == "lobb_num"
    assert tasks[596].entry_point == "tuple_size"
    assert tasks[342].shared_names == ()
    for number, name in ((367, "Node"), (601, "Pair"), (927, "Node")):
        assert tasks[number].shared_names == tasks[number].helper_names == (name,)
        assert tasks[number].prompt.startswith(f"class {name}")
        assert f"class {name}" not in tasks[number].solution
    assert tasks[367].setup.startswith("root = Node(1)")
    assert _by_number("sanitized")[82].setup == "import math"


@needs_data
@variants
def test_one_test_is_shown_and_the_others_are_not(variant):
    alike = {37}
    for number, task in _by_number(variant).items():
        (shown,) = task.public_tests
        hidden = task.hidden_tests.split("\n")
        assert task.prompt.count("assert ") == 1
        assert shown in task.prompt
        assert shown in hidden
        assert number in alike or not any(t in task.prompt for t in hidden if t != shown)
        assert number in alike or hidden.count(shown) == 1


@needs_data
@variants
def test_challenge_tests_count_and_are_hidden(variant):
    total = sum(task.num_hidden_tests for task in _by_number(variant).values())
    assert total == {"full": 974 * 3 + 16, "sanitized": 427 * 3 + 22 + 8 + 9 + 4}[variant]


@needs_data
@variants
def test_slow_rows_have_more_time(variant):
    patient = {n: task.test_seconds for n, task in _by_number(variant).items() if task.test_seconds}
    assert patient == {123: 20.0}


@needs_data
@variants
def test_no_carriage_return_is_left(variant):
    for task in _by_number(variant).values():
        assert "\r" not in f"{task.prompt}{task.hidden_tests}{task.solution}{task.setup}"


@variants
def test_sample_has_eight_rows_of_our_own(variant):
    tasks = load_mbpp("sample", None, variant)
    assert len(tasks) == 8
    assert all("sample/" in task.task_id for task in tasks)


def _row(**changes):
    row = {
        "task_id": 7,
        "text": "Write a function  to do\nit.",
        "code": "import re\r\ndef helper(x):\r\n    return x\r\ndef do(x):\r\n    return helper(x)",
        "test_list": ["assert do(1) == 1", "assert do(1) == 1 ", "assert do(2) == 2\n"],
        "test_setup_code": "",
        "challenge_test_list": ["assert do(3) == 3"],
    }
    return row | changes


def test_a_row_becomes_a_task():
    task = parse_row(_row())
    assert task.task_id == "MBPP/7"
    assert task.entry_point == "do"
    assert task.public_tests == ("assert do(2) == 2",)
    assert task.prompt == "# Write a function to do it.\n# For example:\nassert do(2) == 2\n"
    assert task.num_hidden_tests == 4
    assert task.prelude == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"code": "def do(:"}, "MBPP/7 does not parse"),
        ({"test_list": ["assert do(1 == 1"]}, "MBPP/7 does not parse"),
        ({"code": "x = 1"}, "MBPP/7: the tests call no function of the code"),
    ],
)
def test_row_that_makes_no_sense_is_named(changes, message):
    with pytest.raises(InvalidDataError, match=message):
        parse_row(_row(**changes))


def test_own_file_may_be_short(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(_row(task_id=n)) for n in range(3)))
    assert len(load_mbpp("all", str(file))) == 3
    with pytest.raises(InvalidDataError, match="split 'train' is empty"):
        load_mbpp("train", str(file))

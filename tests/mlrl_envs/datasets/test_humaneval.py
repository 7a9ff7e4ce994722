import ast
import json

import pytest

from mlrl_envs.datasets.humaneval import LEFT_OUT_EXAMPLES, SPLITS, load_humaneval, parse_row
from mlrl_envs.errors import InvalidDataError, UnknownNameError

TASKS = load_humaneval("all")


def test_every_row_is_loaded_in_order():
    assert [task.task_id for task in TASKS] == [f"HumanEval/{n}" for n in range(164)]


def test_splits_are_the_published_rows():
    assert [task.task_id for task in load_humaneval("train")] == [
        f"HumanEval/{n}" for n in range(33, 163)
    ]
    assert load_humaneval("eval") == TASKS[:32]
    assert not set(SPLITS["train"]) & set(SPLITS["eval"])


def test_unknown_split_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'eval'"):
        load_humaneval("evall")


def test_helpers_of_the_problem_are_in_the_prelude():
    helpers = {task.task_id: task.helper_names for task in TASKS if task.helper_names}
    assert helpers == {
        "HumanEval/10": ("is_palindrome",),
        "HumanEval/32": ("poly",),
        "HumanEval/38": ("encode_cyclic",),
        "HumanEval/50": ("encode_shift",),
    }


def test_most_prompts_show_examples():
    without = [task.task_id for task in TASKS if not task.public_tests]
    assert without == [
        f"HumanEval/{n}" for n in (38, 41, 50, 68, 80, 81, 83, 105, 107, 115, 116, 149, 160)
    ]
    assert sum(len(task.public_tests) for task in TASKS) == 433


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_solution_passes_every_public_test(task):
    scope = {}
    exec(f"{task.prelude}\n\n{task.solution}", scope)
    for test in task.public_tests:
        exec(test, scope)


def test_public_tests_stand_in_the_prompt():
    for task in TASKS:
        for test in task.public_tests:
            call = ast.parse(test).body[0].test.left
            names = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            assert names <= {task.entry_point, "round"}


def test_contradicted_examples_are_listed_with_a_reason():
    assert set(LEFT_OUT_EXAMPLES) == {f"HumanEval/{n}" for n in (47, 116, 130, 148)}
    assert all(LEFT_OUT_EXAMPLES.values())


def _rows():
    return [
        {
            "task_id": f"HumanEval/{n}",
            "prompt": 'def f(x):\n    """f(1) == 2"""\n',
            "entry_point": "f",
            "canonical_solution": "    return x + 1\n",
            "test": "def check(candidate):\n    assert candidate(1) == 2\n    assert True\n",
        }
        for n in range(3)
    ]


def test_own_file_may_be_short(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, _rows())))
    assert len(load_humaneval("all", str(file))) == 3
    assert len(load_humaneval("eval", str(file))) == 3
    with pytest.raises(InvalidDataError, match="split 'train' is empty"):
        load_humaneval("train", str(file))


def test_constant_assertions_are_not_counted():
    assert parse_row(_rows()[0]).num_hidden_tests == 1


def test_row_that_does_not_parse_is_named():
    with pytest.raises(InvalidDataError, match="HumanEval/0 does not parse"):
        parse_row({**_rows()[0], "prompt": "def f(:"})


def test_no_test_compares_an_answer_with_itself():
    for task in TASKS:
        check = ast.parse(task.hidden_tests).body[-2]
        names = {node.id for node in ast.walk(check) if isinstance(node, ast.Name)}
        assert task.entry_point not in names
    assert "solution_sort_third" in TASKS[33].hidden_tests

"""Functions made from a seed."""

import ast
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.datasets.function_steps import KINDS, RESULTS, STEPS
from mlrl_envs.datasets.functions import LEVELS, TOPICS, make_functions
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError, UnknownNameError

DIGEST = (
    "import hashlib; from mlrl_envs.datasets.functions import make_functions as make; "
    "text = repr(make('eval', seed=3, num_tasks=20)); "
    "print(hashlib.sha256(text.encode()).hexdigest())"
)


def run(solution, tests):
    space = {}
    exec(solution + "\n" + tests, space)
    return space


@pytest.mark.parametrize("task", make_functions("eval", seed=0), ids=lambda task: task.task_id)
def test_a_solution_passes_its_tests(task):
    run(task.solution, task.hidden_tests)
    run(task.solution, "\n".join(task.public_tests))
    assert len(ast.parse(task.hidden_tests).body) == task.num_hidden_tests == 10


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**63), st.sampled_from(TOPICS), st.sampled_from(LEVELS))
def test_a_function_has_as_many_steps_as_its_level_and_none_can_be_left_out(seed, topic, level):
    for task in make_functions("train", seed=seed, topics=(topic,), levels=(level,), num_tasks=3):
        signature, *steps, result = task.solution.split("\n")
        assert len(steps) == level
        assert f"({KINDS[topic].variable}: " in signature
        for left_out in steps:
            fewer = "\n".join([signature, *(step for step in steps if step != left_out), result])
            assert failing_tests(task, fewer) >= 2


def failing_tests(task, solution):
    failing = 0
    for test in task.hidden_tests.split("\n")[2:]:
        try:
            run(solution, test)
        except Exception:
            failing += 1
    return failing


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**63))
def test_no_constant_passes_half_of_the_tests(seed):
    for task in make_functions("eval", seed=seed, num_tasks=9):
        values = [test.split(" == ", 1)[1] for test in task.hidden_tests.split("\n")[2:]]
        assert max(values.count(value) for value in values) <= 3
        assert task.public_tests[0].split(" == ", 1)[1] != task.public_tests[1].split(" == ", 1)[1]


def test_train_and_eval_share_no_problem_whatever_their_seeds():
    def steps_of(split, seed):
        tasks = make_functions(split, seed=seed, num_tasks=200)
        return {task.prompt.partition(">>>")[0] for task in tasks}

    assert steps_of("train", 0).isdisjoint(steps_of("eval", 1))
    assert len(steps_of("train", 0)) == 200


def test_problems_are_the_same_in_every_process():
    digests = {
        subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True,
                       env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(digests) == 1


def test_every_sentence_describes_an_expression_of_the_kinds_that_it_names():
    examples = {"numbers": [3, -14, 3, 20], "words": ["area", "oak", "area"], "text": "an area"}
    types = {"numbers": list, "words": list, "text": str}
    for step in (*STEPS, *RESULTS):
        value = examples[step.kind]
        for parameter in step.parameters or ("",):
            code = step.with_parameter(parameter).code.replace("{x}", "value")
            found = eval(code, {"value": value})
            assert "{k}" not in code
            if step in STEPS:
                assert isinstance(found, types[step.becomes]), step
                assert all(isinstance(each, type(examples[step.becomes][0])) for each in found)
            else:
                assert type(found).__name__ == step.becomes.partition("[")[0], step
        assert step.name.isidentifier()


def test_sample_has_every_topic_and_level_and_ignores_the_seed():
    tasks = make_functions("sample", seed=5)
    assert tasks == make_functions("sample", seed=0)
    assert len(tasks) == len(TOPICS) * len(LEVELS)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"split": "dev"}, UnknownNameError, "dev"),
        ({"topics": ["trees"]}, InvalidArgumentError, "trees"),
        ({"levels": [4]}, InvalidArgumentError, "4"),
        ({"levels": []}, InvalidArgumentError, "levels"),
        ({"task_seed": -1}, InvalidArgumentError, "task_seed"),
        ({"num_tasks": 0}, InvalidArgumentError, "num_tasks"),
        ({"data_path": "rows.jsonl"}, InvalidArgumentError, "mlrl/mbpp-v1"),
        (
            {"topics": ["text"], "levels": [1], "num_tasks": 300},
            InvalidDataError,
            "smaller num_tasks",
        ),
    ],
)
def test_what_cannot_be_made_is_said_in_one_line(options, error, words):
    with pytest.raises(error, match=words) as caught:
        mlrl_envs.make("mlrl/functions-v0", **options).reset()
    assert "\n" not in str(caught.value)

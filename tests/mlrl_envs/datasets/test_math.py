"""Generated problems: `mlrl_envs.datasets.math` and `mlrl_envs.datasets.math_problems`."""

import hashlib
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest

from mlrl_envs.datasets.math import SIZES, load_problems
from mlrl_envs.datasets.math_problems import (
    DEFAULT_TOPICS,
    LEVELS,
    TOPICS,
    calculations,
    make_problem,
    make_problems,
)
from mlrl_envs.errors import UnknownNameError
from mlrl_envs.parsing.numbers import read_number
from mlrl_envs.rewards.math.equations import equations, is_backed

OPTIONS = {"seed": 0, "topics": DEFAULT_TOPICS, "levels": LEVELS}
INEQUALITIES = {**OPTIONS, "topics": ("inequality",)}
PROBLEMS_SHA256 = "48cbe329c9899896900ba33dcfa7e5fba4a86086bda0da824c846c2905159352"
FINGERPRINT = (
    "from mlrl_envs.datasets.math import load_problems as load;import hashlib;"
    f"print(hashlib.sha256(repr(load('all', **{OPTIONS!r})).encode()).hexdigest())"
)


def _all():
    return load_problems("all", **OPTIONS)


@pytest.fixture(scope="module", params=[OPTIONS, INEQUALITIES], ids=["default", "inequality"])
def problems(request):
    return load_problems("all", **request.param)


def test_problems_are_the_same_in_another_process():
    here = hashlib.sha256(repr(_all()).encode()).hexdigest()
    command = [sys.executable, "-c", FINGERPRINT]
    there = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert there == here


def test_problems_never_change():
    # Another hash is another set of problems: it needs the next version of the id.
    texts = "\n".join(f"{task.question} {task.answer}" for task in _all())
    assert hashlib.sha256(texts.encode()).hexdigest() == PROBLEMS_SHA256


@pytest.mark.parametrize("split", SIZES)
def test_splits_have_their_sizes(split):
    assert len(load_problems(split, **OPTIONS)) == SIZES[split]


def test_test_is_another_name_of_eval():
    assert load_problems("test", **OPTIONS) == load_problems("eval", **OPTIONS)


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1), (3, 0)])
@pytest.mark.parametrize("topic", TOPICS)
def test_splits_share_no_calculation_whatever_their_seeds(topic, seeds):
    # Of "z + 42 = 63" and "x + 42 = 63", or of apples and stamps, one teaches the other.
    train, evaluation = (
        {calculations(task.solution.split("\n")) for task in tasks}
        for tasks in (
            make_problems("train", size=600, seed=seeds[0], topics=[topic], levels=[1]),
            make_problems("eval", size=150, seed=seeds[1], topics=[topic], levels=[1]),
        )
    )
    assert not train & evaluation


def test_problems_with_the_same_calculation_are_in_the_same_split():
    seen = {}
    for topic in ("arithmetic", "word"):
        for split in ("train", "eval"):
            for task in make_problems(split, size=400, seed=0, topics=[topic], levels=[1]):
                assert seen.setdefault(calculations([task.solution]), split) == split
    assert calculations(["12 + 30 = 42"]) == calculations(["30 + 12 = 42"])


def test_no_problem_comes_twice(problems):
    assert len({task.question for task in problems}) == 1200
    assert len({task.task_id for task in problems}) == 1200


def test_another_seed_makes_others():
    assert load_problems("eval", **{**OPTIONS, "seed": 1}) != load_problems("eval", **OPTIONS)


def test_kinds_take_turns():
    counts = Counter(
        tuple(task.task_id.split("/")[1:3]) for task in load_problems("train", **OPTIONS)
    )
    assert len(counts) == len(DEFAULT_TOPICS) * len(LEVELS)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_every_solution_is_true_and_leads_to_the_answer(problems):
    for task in problems:
        steps = equations(task.solution)
        assert len(steps) == len(task.solution.split("\n"))
        assert all(step.is_true for step in steps)
        assert is_backed(task.solution, read_number(task.answer), task.question)


def test_answers_are_neither_small_nor_in_the_question(problems):
    for task in problems:
        answer = read_number(task.answer)
        assert abs(answer) > 9
        assert task.answer.lstrip("-") not in task.question


def test_no_answer_is_frequent():
    counts = Counter(task.answer for task in _all())
    assert max(counts.values()) / len(_all()) < 0.02


@pytest.mark.parametrize("options", [OPTIONS, INEQUALITIES], ids=["default", "inequality"])
def test_harder_levels_take_more_steps(options):
    def mean_steps(level):
        tasks = load_problems("train", **{**options, "levels": (level,)})
        return sum(len(task.solution.split("\n")) for task in tasks) / len(tasks)

    assert mean_steps(1) < mean_steps(2) < mean_steps(3)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("level", LEVELS)
def test_one_kind_alone_can_be_had(topic, level):
    tasks = make_problems("train", size=300, seed=0, topics=[topic], levels=[level])
    assert all(task.task_id.startswith(f"math/{topic}/{level}/train/0/") for task in tasks)


def test_the_answer_of_an_inequality_holds_and_the_next_integer_does_not():
    form = re.compile(r"the (smallest|largest) integer ([a-z]) with (.+)\?$")
    for task in load_problems("all", **INEQUALITIES):
        which, name, side = form.search(task.question).groups()
        code = re.sub(rf"(\d+){name}", rf"\1*{name}", side)
        answer, step = int(task.answer), 1 if which == "largest" else -1
        assert eval(code, {name: answer})
        assert not eval(code, {name: answer + step})


def test_things_that_are_counted_stay_whole():
    for task in make_problems("train", size=400, seed=0, topics=["word"], levels=[2]):
        assert read_number(task.answer).denominator == 1


def test_problem_is_a_function_of_its_key():
    tasks = load_problems("train", **OPTIONS)
    _, topic, level, split, seed, number = tasks[7].task_id.split("/")
    again = make_problem(split, seed=int(seed), number=int(number), topic=topic, level=int(level))
    assert again == tasks[7]


def test_sample_is_the_same_whatever_the_options():
    assert load_problems("sample", seed=9, topics=("word",), levels=(2,))[0].answer == "67"


def test_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        load_problems("trian", **OPTIONS)


def test_hand_computed_problems():
    tasks = {task.question: task.answer for task in _all()}
    assert tasks["What is 17 * 31 + 94?"] == "621"
    assert Fraction(tasks["Solve for y: 14(y + 37) = 9y + 423"]) == -19

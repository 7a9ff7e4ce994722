"""Generated tool tasks, and own questions: `mlrl_envs.datasets.tools`."""

import hashlib
import re
import subprocess
import sys

import pytest

from mlrl_envs.datasets.tools import (
    KINDS,
    LEVELS,
    SIZES,
    GeneratedTasks,
    load_corpus,
    load_questions,
    make_task,
)
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError


def make_tasks(split, size, seed=0):
    return GeneratedTasks(((split, size),), seed, tuple(KINDS), LEVELS)[:]


TASKS, EVAL = make_tasks("train", 120), make_tasks("eval", 60)
TASKS_SHA256 = "ec2b20d255c17e8e2e154098b1ff6d88bf63d9c2fa35ab905586fe2d38e8e1b6"
FINGERPRINT = (
    "from mlrl_envs.datasets.tools import *; import hashlib;"
    "tasks = GeneratedTasks((('eval', 60),), 0, tuple(KINDS), LEVELS)[:];"
    "print(hashlib.sha256(repr(tasks).encode()).hexdigest())"
)
COMMON = {"Bell", "Road", "Wagon", "Hull", "Launch", "Light", "Rule", "Mill", "Foundry", "Guild"}


def values_of(tasks):
    """Return the invented names, the codes and the answers of tasks."""
    found = set()
    for task in tasks:
        text = " ".join([task.question, *dict(task.briefs).values(), task.answer, *task.rivals])
        names = set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]{4,}|[A-Z]+-[0-9]{3}", text))
        found |= {task.answer, *(names - COMMON)}
        found |= {document.id for document in task.documents}
    return found


def test_splits_share_no_name_no_code_and_no_answer():
    train = values_of(TASKS) | values_of(make_tasks("sample", 10))
    train |= values_of(make_tasks("train", 300, seed=5))
    assert not train & values_of(EVAL)
    assert not train & values_of(make_tasks("eval", 300, seed=2))


def drawn_numbers(tasks):
    """Return the numbers that tasks draw, without months, days and row numbers."""
    found = set()
    for task in tasks:
        told = " ".join([*dict(task.briefs).values(), *(d.text for d in task.documents)])
        told = re.sub(r"(\d{4})-\d\d-\d\d|night 1\b", r"\1", told)
        rows = " ".join(line.partition(",")[2] for _, text in task.files for line in text.split())
        found |= set(re.findall(r"\d+", told + " " + rows))
    return found


def test_splits_share_no_number():
    tanks = [task for task in (*TASKS, *EVAL) if "/tanks/" in task.task_id]
    assert all("tanks.txt" in dict(task.files) for task in tanks)
    train, evals = drawn_numbers(TASKS), drawn_numbers(EVAL)
    assert len(train) > 200
    assert len(evals) > 100
    assert not {number for number in train & evals if number != "5"}  # of halves, such as 7.5


def test_tasks_are_the_same_in_another_process():
    here = hashlib.sha256(repr(EVAL).encode()).hexdigest()
    command = [sys.executable, "-c", FINGERPRINT]
    there = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert there == here


def test_tasks_never_change():
    # Another hash is another set of tasks: it needs the next version of the id.
    assert hashlib.sha256(repr((TASKS, EVAL)).encode()).hexdigest() == TASKS_SHA256


def test_kinds_and_levels_take_turns_and_no_task_comes_twice():
    ids = [tuple(task.task_id.split("/")[1:3]) for task in TASKS]
    assert len(set(ids)) == len(KINDS) * len(LEVELS) >= 30
    assert len({task.question for task in TASKS}) > 100
    assert len({repr((t.question, t.documents, t.files)) for t in TASKS}) == len(TASKS)


def test_another_seed_makes_others():
    assert not set(make_tasks("eval", 60, seed=1)) & set(EVAL)


def test_a_task_is_a_function_of_its_key():
    _, kind, level, split, seed, number = TASKS[7].task_id.split("/")
    make_task.cache_clear()
    again = make_task(split, seed=int(seed), number=int(number), kind=kind, level=int(level))
    assert again == TASKS[7]
    assert make_tasks("train", 8)[-1] == again
    both = GeneratedTasks((("train", 3), ("eval", 2)), 0, tuple(KINDS), LEVELS)
    assert both[:] == (*TASKS[:3], *EVAL[:2])
    assert (len(both), both[-1]) == (5, EVAL[1])
    with pytest.raises(IndexError):
        both[5]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("split", SIZES)
def test_one_kind_alone_can_be_had(kind, level, split):
    tasks = GeneratedTasks(((split, 5),), 0, (kind,), (level,))
    assert all(task.task_id.startswith(f"tools/{kind}/{level}/{split}/0/") for task in tasks)


@pytest.mark.parametrize("task", [*TASKS, *EVAL], ids=lambda task: task.task_id)
def test_the_answer_stands_nowhere_in_what_agents_are_told(task):
    told = " ".join([task.question, *dict(task.briefs).values()])
    if task.answer[0].isdigit():
        assert task.answer not in told + " ".join(d.text for d in task.documents)
    else:
        assert "/mills/" in task.task_id or task.answer not in told
        assert task.rivals


@pytest.mark.parametrize("task", TASKS[:30], ids=lambda task: task.task_id)
def test_both_agents_know_something_and_files_have_twins(task):
    briefs = dict(task.briefs)
    assert briefs.keys() == {"researcher", "solver"}
    assert all(briefs.values())
    assert dict(task.files).keys() == dict(task.twin_files).keys()
    assert bool(task.files) == any(item.twin for item in task.evidence) == (not task.documents)


def test_no_answer_is_frequent():
    answers = [task.answer for task in make_tasks("train", 600)]
    assert max(map(answers.count, answers)) < 12


def test_own_rows_and_own_documents_are_read(tmp_path):
    rows, documents = tmp_path / "rows.jsonl", tmp_path / "documents.jsonl"
    rows.write_text('{"task_id": "x"}')
    documents.write_text('{"id": "1", "title": "t", "text": "x"}\n')
    assert load_corpus(str(documents))[0].id == "1"
    with pytest.raises(InvalidDataError, match="lacks question"):
        load_questions(str(rows))


@pytest.mark.parametrize(
    "text", ["no json", "{}", "[]", '{"id": 1, "title": "", "text": ""}\n' * 2]
)
def test_a_corpus_that_is_none_is_an_error(tmp_path, text):
    file = tmp_path / "corpus.jsonl"
    file.write_text(text)
    with pytest.raises(InvalidDataError, match=r"corpus\.jsonl"):
        load_corpus(str(file))
    with pytest.raises(InvalidArgumentError, match="no file"):
        load_corpus(str(tmp_path / "nowhere"))

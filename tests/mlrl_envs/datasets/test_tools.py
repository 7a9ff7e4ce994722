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
    load_corpus,
    load_questions,
    make_task,
    make_tasks,
)
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError, UnknownNameError

OPTIONS = {"seed": 0, "kinds": tuple(KINDS), "levels": LEVELS}
TASKS = make_tasks("train", size=120, **OPTIONS)
EVAL = make_tasks("eval", size=60, **OPTIONS)
TASKS_SHA256 = "54e8c4fa71d701aa3ecc938cbfc3f02d710db98c575c393e2c046086e6a09df5"
FINGERPRINT = (
    "from mlrl_envs.datasets.tools import make_tasks;import hashlib;"
    f"print(hashlib.sha256(repr(make_tasks('eval', size=60, **{OPTIONS!r})).encode()).hexdigest())"
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
    shared = values_of(TASKS) & values_of(EVAL)
    assert not shared
    assert not values_of(make_tasks("sample", size=10, **OPTIONS)) & values_of(EVAL)
    assert not values_of(EVAL) & values_of(make_tasks("train", size=60, **{**OPTIONS, "seed": 5}))


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
    assert make_tasks("eval", size=60, **{**OPTIONS, "seed": 1}) != EVAL


def test_a_task_is_a_function_of_its_key():
    _, kind, level, split, seed, number = TASKS[7].task_id.split("/")
    again = make_task(split, seed=int(seed), number=int(number), kind=kind, level=int(level))
    assert again == TASKS[7]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("split", SIZES)
def test_one_kind_alone_can_be_had(kind, level, split):
    tasks = make_tasks(split, size=5, seed=0, kinds=(kind,), levels=(level,))
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
    answers = [task.answer for task in make_tasks("train", size=600, **OPTIONS)]
    assert max(map(answers.count, answers)) < 12


def test_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        make_tasks("trian", size=1, **OPTIONS)


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

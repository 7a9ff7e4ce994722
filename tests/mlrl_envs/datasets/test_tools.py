import pytest

from mlrl_envs.datasets.tools import load_corpus, load_tools
from mlrl_envs.errors import InvalidArgumentError, InvalidDataError

TASKS = (*load_tools("all"), *load_tools("sample"))


def test_splits_are_disjoint_and_not_empty():
    train, evaluation, sample = (load_tools(split) for split in ("train", "eval", "sample"))
    assert (len(train), len(evaluation), len(sample)) == (20, 10, 8)
    questions = [task.question for task in (*train, *evaluation, *sample)]
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_the_answer_stands_nowhere_in_what_agents_are_told(task):
    texts = [task.question, *dict(task.briefs).values(), *dict(task.files).values()]
    texts += [f"{document.title} {document.text}" for document in load_corpus()]
    if task.answer[0].isdigit():
        texts = texts[:-42]
        assert not any(task.answer in text.replace(",", " ").split() for text in texts)
    else:  # a name: among others in the archive, in nothing that is told
        assert not any(task.answer in text for text in texts[:-42])


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_both_agents_know_something_and_files_have_twins(task):
    briefs = dict(task.briefs)
    assert briefs.keys() == {"researcher", "solver"}
    assert all(briefs.values())
    assert task.required_tools
    assert dict(task.twin_files).keys() == {
        path for path in dict(task.files) if any(item.twin for item in task.evidence)
    }


def test_most_tasks_need_calls_of_different_tools():
    assert sum(len(task.evidence) > 1 for task in TASKS) >= 20
    assert {tool for task in TASKS for tool in task.required_tools} == {
        *("search", "calculator", "python", "read_file"),
    }


def test_own_rows_and_own_documents_are_read(tmp_path):
    rows, documents = tmp_path / "rows.jsonl", tmp_path / "documents.jsonl"
    rows.write_text('{"task_id": "x"}')
    documents.write_text('{"id": "1", "title": "t", "text": "x"}\n')
    assert load_corpus(str(documents))[0].id == "1"
    with pytest.raises(InvalidDataError, match="lacks question"):
        load_tools("all", str(rows))


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

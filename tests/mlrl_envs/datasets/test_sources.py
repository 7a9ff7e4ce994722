import gzip
import json
import sys
import types

import pytest

from mlrl_envs.datasets.humaneval import SOURCE as HUMANEVAL
from mlrl_envs.datasets.humaneval import parse_row as parse_humaneval_row
from mlrl_envs.datasets.sources import DataSource, find_rows, load_split
from mlrl_envs.errors import DataNotFoundError, InvalidDataError, UnknownNameError
from mlrl_envs.types import Task

ROWS = [{"task_id": "a", "text": "\u4e2d"}, {"task_id": "b", "text": ""}]
SOURCE = DataSource(
    file="Things",
    fields=("task_id", "text"),
    hub="someone/things",
    revision="0123456789abcdef",
    hub_split="test",
    package="a_package_with_things",
    distribution="things",
    resource="data/things.jsonl.gz",
)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No data anywhere, and no network."""
    monkeypatch.delenv("MLRL_DATA_DIR", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _write(file, rows=ROWS):
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "wt", encoding="utf-8") as out:
        out.write(text)
    return str(file)


def _package(tmp_path, monkeypatch, rows=ROWS):
    package = tmp_path / "site" / SOURCE.package
    _write(package / SOURCE.resource, rows)
    (package / "__init__.py").write_text("raise ImportError('must not be imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def _hub(monkeypatch, answer):
    calls = []

    def load_dataset(name, **options):
        calls.append((name, options))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return calls


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_explicit_path_is_read(tmp_path, suffix):
    assert find_rows(SOURCE, _write(tmp_path / f"x{suffix}")) == ROWS


def test_explicit_path_comes_first(tmp_path, monkeypatch):
    _write(tmp_path / "Things.jsonl", ROWS[:1])
    monkeypatch.setenv("MLRL_DATA_DIR", str(tmp_path))
    assert find_rows(SOURCE, _write(tmp_path / "other.jsonl")) == ROWS


def test_missing_explicit_path_is_an_error_whatever_else_there_is(tmp_path, monkeypatch):
    _package(tmp_path, monkeypatch)
    with pytest.raises(DataNotFoundError, match=r"no file 'nowhere.jsonl' with the rows of Things"):
        find_rows(SOURCE, "nowhere.jsonl")


def test_data_dir_comes_before_the_package(tmp_path, monkeypatch):
    _package(tmp_path, monkeypatch)
    _write(tmp_path / "data" / "Things.jsonl", ROWS[1:])
    monkeypatch.setenv("MLRL_DATA_DIR", str(tmp_path / "data"))
    assert find_rows(SOURCE) == ROWS[1:]


def test_package_comes_before_the_hub_and_is_not_imported(tmp_path, monkeypatch):
    _package(tmp_path, monkeypatch)
    calls = _hub(monkeypatch, ROWS[:1])
    assert find_rows(SOURCE) == ROWS
    assert calls == []


def test_hub_is_asked_at_the_pinned_revision(monkeypatch):
    calls = _hub(monkeypatch, ROWS)
    assert find_rows(SOURCE) == ROWS
    assert calls == [("someone/things", {"split": "test", "revision": "0123456789abcdef"})]


def test_hub_is_never_asked_when_offline(monkeypatch):
    calls = _hub(monkeypatch, ROWS)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataNotFoundError):
        find_rows(SOURCE)
    assert calls == []


def test_one_line_names_every_place():
    with pytest.raises(DataNotFoundError) as caught:
        find_rows(SOURCE)
    message = str(caught.value)
    for place in (
        "data_path",
        "MLRL_DATA_DIR/Things.jsonl",
        "pip install things",
        "someone/things",
    ):
        assert place in message
    assert "HF_HUB_OFFLINE is set" in message
    assert "\n" not in message


def test_failing_hub_is_named_with_its_error(monkeypatch):
    _hub(monkeypatch, ConnectionError("a long\nstory"))
    with pytest.raises(DataNotFoundError, match="ConnectionError at revision 01234567") as caught:
        find_rows(SOURCE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"task_id": "a"}\n', "Things row 0 lacks text"),
        ('{"task_id": "a", "text": ""}\n{oops\n', "line 2 is no JSON"),
        ("[1]\n", "line 1 is no JSON object"),
    ],
)
def test_malformed_rows_are_named(tmp_path, text, message):
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    with pytest.raises(InvalidDataError, match=message):
        find_rows(SOURCE, str(file))


def _parse(row):
    return Task(row["task_id"])


def _rows(folder, *names):
    folder.mkdir()
    rows = [json.dumps({"task_id": name, "text": ""}) for name in names]
    (folder / "Things.jsonl").write_text("\n".join(rows))
    return str(folder)


def test_a_split_is_its_rows_and_follows_the_surroundings(tmp_path, monkeypatch):
    splits = {"train": (1, 2, 9), "eval": (7,)}
    monkeypatch.setenv("MLRL_DATA_DIR", _rows(tmp_path / "one", "a", "b", "c"))
    assert load_split(SOURCE, _parse, split="train", splits=splits) == (Task("b"), Task("c"))
    monkeypatch.setenv("MLRL_DATA_DIR", _rows(tmp_path / "two", "x", "y"))
    assert load_split(SOURCE, _parse, split="train", splits=splits) == (Task("y"),)
    with pytest.raises(InvalidDataError, match="split 'eval' is empty: there are only 2 rows"):
        load_split(SOURCE, _parse, split="eval", splits=splits)
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        load_split(SOURCE, _parse, split="trian", splits=splits)


def test_the_sample_needs_no_data_at_all(monkeypatch):
    monkeypatch.setenv("MLRL_DATA_DIR", "nowhere")
    tasks = load_split(HUMANEVAL, parse_humaneval_row, split="sample", splits={})
    assert tasks
    assert all(task.task_id.startswith("sample/") for task in tasks)

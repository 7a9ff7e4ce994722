import json
import os
import sys
import types
from pathlib import Path

import pytest

from mlrl_envs.datasets import arxiv, tldr
from mlrl_envs.errors import DataNotFoundError, InvalidDataError, UnknownNameError

POSTS = [{"prompt": f"SUBREDDIT: r/x\n\nPOST: number {n}\n\nTL;DR:"} for n in range(12)]
ABSTRACTS = [
    {"article_id": f"a/{n}", "abstract_text": f" Abstract {n}. ", "token_count": 2}
    for n in range(12)
]
KINDS = {
    "tldr": (tldr.load_tldr, POSTS, "tldr"),
    "arxiv": (arxiv.load_arxiv, ABSTRACTS, "arxiv_abstract"),
}
DATA_DIR = os.environ.get("MLRL_DATA_DIR", "")
with_data = pytest.mark.skipif(not DATA_DIR, reason="MLRL_DATA_DIR is not set")


@pytest.fixture(params=KINDS)
def kind(request):
    """One of the two data sets: how it is loaded, rows, and the name of its file."""
    return KINDS[request.param]


@pytest.fixture
def nowhere(monkeypatch):
    """No data anywhere, and no network."""
    monkeypatch.delenv("MLRL_DATA_DIR", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


@pytest.mark.parametrize("place", ["path", "folder"])
def test_a_local_file_is_divided_and_no_row_lost(kind, place, tmp_path, monkeypatch):
    load, rows, name = kind
    path = _write(tmp_path / f"{name}.jsonl", rows)
    monkeypatch.setenv("MLRL_DATA_DIR", str(tmp_path))
    path = path if place == "path" else None
    train, evaluation, everything = (load(split, path) for split in ("train", "eval", "all"))
    assert len(everything) == 12
    assert evaluation == everything[4::5]
    assert not set(train) & set(evaluation)
    assert set(train) | set(evaluation) == set(everything)


def test_eval_of_arxiv_is_also_called_val(tmp_path):
    path = _write(tmp_path / "x.jsonl", ABSTRACTS)
    assert arxiv.load_arxiv("val", path) == arxiv.load_arxiv("eval", path)


def test_splits_of_the_hub_are_its_own(kind, nowhere, monkeypatch):
    load, rows, _ = kind
    asked = []

    def load_dataset(name, **options):
        asked.append((name, options["split"], options["revision"]))
        return rows[:3]

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    for number, split in enumerate(("train", "eval", "all")):
        assert len(load(split)) == 3
        name, hub_split, revision = asked[number]
        assert name in ("trl-lib/tldr", "OpenMLRL/arXiv_abstract")
        assert hub_split.startswith(("train", "test", "val"))
        assert hub_split.endswith("[:1000]") is (split != "all")
        assert len(revision) == 40
        load.__globals__["load_writing"].__globals__["load_split"].__globals__[
            "_load_all"
        ].cache_clear()


def test_absent_data_are_explained(kind, nowhere):
    with pytest.raises(DataNotFoundError, match=r"MLRL_DATA_DIR/.*jsonl.*the hub's"):
        kind[0]("train")


def test_unknown_split_is_refused(kind, nowhere):
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        kind[0]("trian")


def test_too_few_rows_to_divide_are_an_error(kind, tmp_path):
    load, rows, _ = kind
    with pytest.raises(InvalidDataError, match="split 'eval' is empty: there are only 3 rows"):
        load("eval", _write(tmp_path / "x.jsonl", rows[:3]))


@pytest.mark.parametrize("text", ["", "  ", None, 3])
def test_rows_without_a_text_are_an_error(kind, text, tmp_path):
    load, rows, _ = kind
    field = "prompt" if "prompt" in rows[0] else "abstract_text"
    with pytest.raises(InvalidDataError, match="has no"):
        load("all", _write(tmp_path / "x.jsonl", [{**rows[0], field: text}]))


def test_samples_need_nothing(kind, nowhere):
    tasks = kind[0]("sample")
    assert len({task.task_id for task in tasks}) == len(tasks) == 8


def test_abstracts_of_the_sample_have_100_to_300_words():
    assert all(100 <= len(task.source.split()) <= 300 for task in arxiv.load_arxiv("sample"))


def test_a_post_keeps_its_id_wherever_it_stands(tmp_path):
    path = _write(tmp_path / "x.jsonl", POSTS[::-1])
    there = {task.source: task.task_id for task in tldr.load_tldr("all", path)}
    assert {tldr.parse_row(row).task_id for row in POSTS} == set(there.values())
    assert len(there) == 12


@with_data
@pytest.mark.parametrize("name", ["tldr", "arxiv"])
def test_every_real_row_loads(name):
    load, _, file = KINDS[name]
    tasks = load("all")
    with (Path(DATA_DIR) / f"{file}.jsonl").open(encoding="utf-8") as lines:
        assert len(tasks) == sum(bool(line.strip()) for line in lines)
    assert len({task.task_id for task in tasks}) == len(tasks)
    assert len(load("train")) + len(load("eval")) == len(tasks)

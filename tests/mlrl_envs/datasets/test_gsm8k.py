import json

import pytest

import mlrl_envs
from mlrl_envs.datasets.gsm8k import SOURCE, SPLITS, load_gsm8k, parse_row
from mlrl_envs.errors import DataNotFoundError, InvalidDataError, UnknownNameError


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No data anywhere, and no network."""
    monkeypatch.delenv("MLRL_DATA_DIR", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _rows(count):
    return [{"question": f"What is {n} + {n}?", "answer": f"#### {2 * n}"} for n in range(count)]


def _write(folder, count):
    file = folder / "gsm8k.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in _rows(count)))
    return str(file)


def test_row_becomes_a_task():
    row = {"question": " How many? \n", "answer": "2 * 540 = <<2*540=1080>>1080 eggs.\n#### 1,080"}
    task = parse_row(row)
    assert (task.question, task.answer) == ("How many?", "1080")
    assert task.solution == "2 * 540 = 1080 eggs."


@pytest.mark.parametrize("answer", ["", "#### none", "5 ####", "no mark: 5"])
def test_row_without_a_number_behind_the_mark_is_refused(answer):
    with pytest.raises(InvalidDataError, match="no number behind ####"):
        parse_row({"question": "q", "answer": answer})


def test_splits_are_the_data_sets_own(tmp_path):
    path = _write(tmp_path, 8792)
    sizes = {split: len(load_gsm8k(split, path)) for split in SPLITS}
    assert sizes == {"train": 7473, "eval": 1319, "test": 1319, "all": 8792}
    assert load_gsm8k("eval", path) == load_gsm8k("test", path)
    ids = [task.task_id for task in load_gsm8k("all", path)]
    assert ids == [f"gsm8k/{n}" for n in range(8792)]
    assert load_gsm8k("eval", path)[0].task_id == "gsm8k/7473"


def test_folder_of_data_is_found(tmp_path, monkeypatch):
    _write(tmp_path, 3)
    monkeypatch.setenv("MLRL_DATA_DIR", str(tmp_path))
    env = mlrl_envs.make("mlrl/math-v2", source="gsm8k")
    assert env.num_tasks == 3


def test_short_file_has_no_evaluation(tmp_path):
    with pytest.raises(InvalidDataError, match="there are only 3 rows"):
        load_gsm8k("eval", _write(tmp_path, 3))


def test_without_data_one_line_names_every_place():
    with pytest.raises(DataNotFoundError) as caught:
        mlrl_envs.make("mlrl/math-v2", source="gsm8k")
    message = str(caught.value)
    assert "\n" not in message
    for place in ("data_path", "MLRL_DATA_DIR/gsm8k.jsonl", SOURCE.hub, "HF_HUB_OFFLINE is set"):
        assert place in message


def test_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        load_gsm8k("trian")


def test_sample_needs_nothing():
    tasks = load_gsm8k("sample")
    assert len({task.task_id for task in tasks}) == len(tasks) == 10

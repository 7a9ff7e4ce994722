import json

import pytest

from mlrl_envs.datasets.debate import SPLITS, load_debate, parse_row
from mlrl_envs.datasets.propositions import make_propositions
from mlrl_envs.errors import DataNotFoundError, InvalidDataError, UnknownNameError

ROW = {
    "task_id": "own/0",
    "proposition": "Tea is better.",
    "pro_points": ["a"],
    "con_points": ["b"],
}


def test_splits_share_nothing_and_make_up_all():
    ids = {split: [task.task_id for task in load_debate(split)] for split in SPLITS}
    assert [len(ids[split]) for split in ("train", "eval", "all")] == [2320, 584, 2904]
    assert set(ids["train"]) | set(ids["eval"]) == set(ids["all"])
    assert len(set(ids["all"])) == 2904


def test_made_propositions_of_the_splits_share_no_key_point():
    points = [
        {point for task in make_propositions(split) for point in task.pro_points}
        for split in ("train", "eval")
    ]
    assert not points[0] & points[1]
    assert [len(found) for found in points] == [256, 64]


def test_the_same_points_serve_both_sides():
    tasks = make_propositions("train")
    first = [task for task in tasks if task.task_id.startswith("debate/train/0/")]
    assert {task.pro_points for task in first} == {task.con_points for task in first}
    assert len({task.proposition for task in tasks}) == len(tasks)


def test_every_proposition_has_key_points_for_both_sides():
    for task in (*load_debate("all"), *load_debate("sample")):
        assert task.proposition.endswith(".")
        assert len(task.pro_points) == len(task.con_points) == 4
        assert len({*task.pro_points, *task.con_points}) == 8
        assert all(2 <= len(point.split()) <= 11 for point in (*task.pro_points, *task.con_points))


def test_sample_is_six_others():
    sample = load_debate("sample")
    assert len(sample) == 6
    assert not {t.proposition for t in sample} & {t.proposition for t in load_debate("all")}


def test_own_file_is_read_whole(tmp_path):
    file = tmp_path / "own.jsonl"
    rows = [{**ROW, "task_id": f"own/{n}"} for n in range(40)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [len(load_debate(split, str(file))) for split in SPLITS] == [40, 40, 40]


def test_missing_file_is_an_error():
    with pytest.raises(DataNotFoundError, match=r"no file 'nowhere.jsonl'"):
        load_debate("train", "nowhere.jsonl")


def test_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'eval'"):
        load_debate("evla")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pro_points": []}, "pro_points must hold at least one"),
        ({"con_points": "a point"}, "con_points must be a list"),
        ({"con_points": ["", "b"]}, "con_points must be a list"),
        ({"proposition": " "}, "proposition must be a text"),
    ],
)
def test_bad_row_is_refused(change, message):
    with pytest.raises(InvalidDataError, match=message):
        parse_row({**ROW, **change})

"""Pictures of worlds: every cell is there, and no content of a file becomes markup."""

import copy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import mlrl_envs
from mlrl_learners.report.transcript_markup import writes
from mlrl_learners.report.turn_pictures import turn_pictures
from mlrl_learners.report.world_picture import world_picture
from mlrl_learners.runs.stored import StoredTurn

ROOT = Path(__file__).parents[3]
WALL = {
    "legend": {".": "air", "#": "any block", "A": "stone"},
    "layers": [["A."], ["A."]],
    "target": [["#."], [".#"]],
}


def test_a_wall_shows_built_missing_and_wrong_cells():
    picture = world_picture(WALL)
    assert picture.count("<title>") == 4
    assert picture.count("stroke-dasharray") == 1  # (1, 1) is missing
    assert picture.count("<path") == 1  # (0, 1) should be air
    assert "1 of 2 blocks of the target, 1 blocks that should be air" in picture


def test_a_house_shows_wrong_blocks_with_a_red_edge():
    env = mlrl_envs.make("mlrl/housebuild-v0", split="sample")
    env.reset(seed=0)
    *_, infos = env.step(env.reference_actions())
    world = infos["builder_1"]["diagnostics"]["world"]
    assert "#e0301e" not in world_picture(world)
    other = copy.deepcopy(world)
    other["layers"][-1] = ["F" * 6] * 7
    assert "#e0301e" in world_picture(other)


def test_a_file_of_its_own_is_xml():
    ET.fromstring(world_picture(WALL, standalone=True))  # noqa: S314  our own picture


@pytest.mark.parametrize(
    "change",
    [
        {"legend": None},
        {"legend": {"A": 3}},
        {"layers": [["A."], ["A"]]},
        {"layers": [["A.", "A."], ["A."]]},
        {"layers": []},
        {"layers": "A"},
        {"layers": [[3]]},
        {"target": [["#."]]},
        {"target": [["?."], [".#"]]},
        {"layers": [["A" * 30_000]], "target": [["A" * 30_000]]},
    ],
)
def test_anything_else_has_no_picture(change):
    assert world_picture({**WALL, **change}) is None
    assert world_picture([change]) is None


def test_names_of_blocks_are_escaped():
    hostile = '<script>alert(1)</script>\ud800"'
    picture = world_picture({**WALL, "legend": {**WALL["legend"], "A": hostile}})
    assert "<script" not in picture
    assert "&lt;script" in picture


def test_a_turn_shows_equal_worlds_once_and_not_as_json():
    facts = {"checks": [], "world": WALL, "iou": 0.5}
    turn = StoredTurn(
        observations={},
        actions={"a": "", "b": ""},
        rewards={"a": 0.0, "b": 0.0},
        components={},
        diagnostics={"a": facts, "b": facts},
    )
    assert len(turn_pictures(turn)) == 1
    shown = writes("a", turn)
    assert "legend" not in shown
    assert "iou" in shown


def test_pictures_of_the_page_are_current(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    sys.modules.pop("world_pictures", None)
    from world_pictures import pictures

    for file, text in pictures().items():
        assert (ROOT / "docs/images" / file).read_text("utf-8") == text, (
            "run docs/world_pictures.py"
        )

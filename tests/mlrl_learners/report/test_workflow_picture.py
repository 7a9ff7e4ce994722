"""Pictures of workflows: every node and edge is there, and no content of a file becomes markup."""

import copy
import re
import xml.etree.ElementTree as ET

import pytest

from mlrl_envs.workflows import SHAPES, as_graph, facts_of
from mlrl_learners.report.transcript_markup import writes
from mlrl_learners.report.turn_pictures import turn_pictures, workflow_of
from mlrl_learners.report.workflow_picture import workflow_picture
from mlrl_learners.runs.stored import StoredTurn

FACTS = facts_of(as_graph({"shape": "critic", "rounds": 2}, ("main",)))
PLAYED = {**FACTS, "wrote": [["writer"], ["critic"]], "played": {"main": "writer"}}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_a_picture_with_all_its_nodes_and_edges(name):
    graph = as_graph(name, ("left", "right"))
    picture = workflow_picture(facts_of(graph), standalone=True)
    ET.fromstring(picture)  # noqa: S314  our own picture
    assert picture.count("<rect") == len(graph.nodes)
    assert picture.count("<polygon") == sum(len(node.reads) for node in graph.nodes)


def test_nodes_that_wrote_and_that_were_played_are_told_apart():
    picture = workflow_picture(PLAYED)
    assert "reviser works for main, wrote nothing" in picture
    assert "critic works for main, wrote<" in picture
    assert picture.count("#cdeed6") == 1


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": []},
        {"nodes": [{"name": 3}]},
        {"nodes": "writer"},
        {"nodes": FACTS["nodes"] * 2},
        {"nodes": FACTS["nodes"] * 40},
        {"nodes": [{**FACTS["nodes"][0], "reads": ["x"]}]},
        {"steps": []},
        {"steps": [{"nodes": ["writer"], "rounds": 1}]},
        {"steps": [{"nodes": ["writer"], "rounds": "2"}]},
        {"steps": None},
    ],
    ids=str,
)
def test_anything_else_has_no_picture(change):
    assert workflow_picture({**FACTS, **change}) is None
    assert workflow_picture([change]) is None


@pytest.mark.parametrize("change", [{"wrote": 3}, {"wrote": [3]}, {"played": [1]}], ids=str)
def test_a_strange_record_of_what_happened_is_left_out(change):
    assert workflow_picture({**FACTS, **change}).count("<rect") == 3


def test_names_are_escaped():
    hostile = copy.deepcopy(FACTS)
    for node in hostile["nodes"]:
        node["agent"] = '<script>alert(1)</script>\ud800"\u202e'
    picture = workflow_picture(hostile)
    assert "<script" not in picture
    assert "\u202e" not in picture


def test_a_turn_shows_the_picture_once_and_not_as_json():
    turn = StoredTurn(
        observations={},
        actions={"writer": "", "critic": ""},
        rewards={"writer": 0.0, "critic": 0.0},
        components={},
        diagnostics={"writer": {"checks": [], "workflow": PLAYED}, "critic": {"workflow": PLAYED}},
    )
    assert len(turn_pictures(turn)) == 1
    assert "rounds" not in writes("writer", turn)


def test_long_names_that_differ_at_their_end_are_told_apart():
    names = ["verifier_debater_1", "verifier_debater_2"]
    nodes = [{**FACTS["nodes"][0], "name": name, "reads": []} for name in names]
    picture = str(workflow_picture({"nodes": nodes, "steps": [{"nodes": names, "rounds": 1}]}))
    assert {"verifier…bater_1", "verifier…bater_2"} <= set(re.findall(">([^<>]+)</text>", picture))


def test_the_workflow_of_an_episode_is_that_of_its_last_turn():
    plain = StoredTurn({}, {"main": "x"}, {"main": 0.0}, {}, {"main": {"checks": []}})
    played = StoredTurn({}, {"main": "x"}, {"main": 0.0}, {}, {"main": {"workflow": PLAYED}})
    assert "#cdeed6" in str(workflow_of([plain, played]))
    assert workflow_of([plain]) is None
    assert turn_pictures(played, leave_out={"workflow"}) == []

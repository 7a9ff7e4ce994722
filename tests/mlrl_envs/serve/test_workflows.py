"""Workflows on a server: the graph travels with the options, and episodes are the local ones."""

import json

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError

GRAPH = {
    "nodes": {
        "solver": {"prompt": "{task}\n\nA: short."},
        "verifier": {"reads": ["solver"]},
    }
}


@pytest.mark.parametrize("graph", ["debate", GRAPH], ids=["shape", "graph"])
def test_a_served_workflow_plays_like_a_local_one(server, graph):
    options = {"split": "sample", "max_turns": 1, "workflow": graph}
    local = mlrl_envs.make("mlrl/math-v2", **options)
    remote = server.make("mlrl/math-v2", **options)
    assert remote.possible_agents == local.possible_agents
    assert remote.metadata["workflow"] == local.metadata["workflow"]
    assert mlrl_envs.fingerprint(remote) == mlrl_envs.fingerprint(local)
    assert remote.reset(seed=3) == local.reset(seed=3)
    while local.agents:
        actions = {name: f"{name}\nAnswer: 7" for name in local.acting}
        assert remote.step(actions) == local.step(actions)


def test_the_file_of_a_workflow_is_read_by_the_client(server, tmp_path):
    file = tmp_path / "team.yaml"
    file.write_text(json.dumps(GRAPH))
    remote = server.make("mlrl/math-v2", split="sample", workflow=str(file))
    assert remote.possible_agents == list(GRAPH["nodes"])
    file.unlink()
    with pytest.raises(InvalidArgumentError, match=r"^workflow file '.*' cannot be read"):
        server.make("mlrl/math-v2", workflow=str(file))


def test_a_mistake_in_a_graph_comes_back_as_one_line(server):
    with pytest.raises(mlrl_envs.errors.InvalidArgumentError, match="nobody plays 'verifier'"):
        server.make("mlrl/math-v2", workflow={"nodes": {"solver": {}}})


@pytest.mark.parametrize("times", [201, 10**12, 10**20])
def test_a_graph_of_a_client_makes_no_more_steps_than_allowed(server, times):
    steps = [{"repeat": times, "steps": [["solver", "verifier"]]}]
    graph = {"nodes": {"solver": {}, "verifier": {}}, "steps": steps}
    with pytest.raises(mlrl_envs.errors.InvalidArgumentError, match="an int from 1 to 200"):
        server.make("mlrl/math-v2", split="sample", workflow=graph)


def test_options_of_a_client_have_a_limited_size(server):
    graph = {"nodes": {"a": {"role": "x" * (1 << 20)}}}
    with pytest.raises(mlrl_envs.errors.InvalidArgumentError, match="at most 1048576 bytes"):
        server.make("mlrl/math-v2", split="sample", workflow=graph)

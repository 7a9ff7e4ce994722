"""Graphs that cannot be played are refused in one line that names the node and the fix."""

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.workflows import Graph, Node, as_graph

AGENTS = ("main",)
CYCLE = {"a": {"reads": ["b"]}, "b": {"reads": ["a"]}}
MISTAKES = {
    "a cycle without a limit": ({"nodes": CYCLE}, "cycle a -> b -> a has no limit.*repeat"),
    "a node that reads itself": ({"nodes": {"a": {"reads": "a"}}}, "cycle a -> a has no limit"),
    "a node that is not connected": ({"nodes": {"a": {}, "b": {}}, "steps": ["a", "b"]}, "'a' is"),
    "an unknown node": ({"nodes": {"a": {"reads": ["c"]}}}, "unknown node that 'a' reads 'c'"),
    "an unknown node in a step": ({"nodes": {"a": {}}, "steps": ["a", "b"]}, "in a step 'b'"),
    "an unknown node in a condition": ({"nodes": {"a": {"unless": {"x": "y"}}}}, "'x'"),
    "an unknown agent": ({"nodes": {"a": {"agent": "mian"}}}, "did you mean 'main'"),
    "two that play an agent": (
        {"nodes": {"a": {"plays": True}, "b": {"plays": True}}},
        "a and b play 'main' in one step.*combine: vote",
    ),
    "a node in no step": ({"nodes": {"a": {}, "b": {}}, "steps": ["a"]}, "'b' is in no step"),
    "a node twice in a step": ({"nodes": {"a": {}}, "steps": [["a", "a"]]}, "'a' is twice"),
    "reading what comes later": (
        {"nodes": {"a": {"reads": "b"}, "b": {}}, "steps": ["a", "b"]},
        "'a' reads 'b', which does not write before it",
    ),
    "a player under a condition": (
        {"nodes": {"a": {}, "b": {"when": {"a": "go"}}}},
        "only under a condition",
    ),
    "players that may both wait": (
        {
            "nodes": {
                "c": {},
                "A": {"plays": True, "unless": {"c": "X"}},
                "B": {"plays": True, "when": {"c": "X"}},
            },
            "steps": ["c", "A", "c", "B"],
        },
        "only under a condition",
    ),
    "an empty graph": ({"nodes": {}}, "1 to 64 nodes, got 0"),
    "too many steps": ({"nodes": {"a": {}}, "steps": [{"repeat": 999, "steps": ["a"]}]}, "200"),
    "rounds without end": (
        {"nodes": {"a": {}}, "steps": [{"repeat": 10**20, "steps": ["a"]}]},
        "repeat must be an int from 1 to 200",
    ),
    "many short rounds": (
        {"nodes": {"a": {}}, "steps": [{"repeat": 101, "steps": ["a", "a"]}]},
        "at most 200 steps, got 202",
    ),
    "many repetitions": (
        {"nodes": {"a": {}}, "steps": [{"repeat": 1, "steps": ["a"]}] * 201},
        "at most 200 steps, got 201",
    ),
    "many nodes": ({"nodes": {f"a{n}": {} for n in range(65)}}, "at most 64 nodes, got 65"),
    "many conditions": (
        {
            "nodes": {"a": {}},
            "steps": [{"steps": ["a"], "until": {"a": f"v{n}"}} for n in range(65)],
        },
        "at most 64 conditions of node 'a', got 65",
    ),
    "a long role": ({"nodes": {"a": {"role": "x" * 100_001}}}, "100000 characters in role of 'a'"),
    "a field again and again": ({"nodes": {"a": {"prompt": "{task}" * 5}}}, "{task} 5 times"),
    "no rounds": ({"nodes": {"a": {}}, "steps": [{"repeat": 0, "steps": ["a"]}]}, "got 0"),
    "nothing repeated": ({"nodes": {"a": {}}, "steps": [{"repeat": 2}]}, "repeat needs steps"),
    "an empty step": ({"nodes": {"a": {}}, "steps": ["a", []]}, "must name a node"),
    "steps of another kind": ({"nodes": {"a": {}}, "steps": "a"}, "steps must be a list"),
    "a number as a node": ({"nodes": {"a": {}}, "steps": [[1]]}, "must name nodes, got \\[1\\]"),
    "a name like a field": ({"nodes": {"task": {}}}, "unlike a field.*'task'"),
    "a name with a dot": ({"nodes": {"a.b": {}}}, "letters, digits"),
    "an unknown key": ({"nodes": {"a": {"read": []}}}, "did you mean 'reads'"),
    "an unknown key of a graph": ({"nodes": {"a": {}}, "step": []}, "did you mean 'steps'"),
    "an unknown field": ({"nodes": {"a": {"prompt": "{tsk}"}}}, "did you mean 'task'"),
    "an attribute in a field": ({"nodes": {"a": {"prompt": "{task.__class__}"}}}, "unknown field"),
    "a brace": ({"nodes": {"a": {"prompt": "{task"}}}, "no template"),
    "a format": ({"nodes": {"a": {"prompt": "{task:>9999999}"}}}, "write {task}"),
    "a prompt that is no text": ({"nodes": {"a": {"prompt": 3}}}, "must be a text, got 3"),
    "a verdict that is no text": ({"nodes": {"a": {"when": {"a": 1}}}}, "nodes to verdicts"),
    "a verdict without a letter": (
        {"nodes": {"a": {}, "b": {"unless": {"a": "***"}}}},
        "nodes to verdicts",
    ),
    "another way to combine": ({"nodes": {"a": {}}, "combine": "vot"}, "did you mean 'vote'"),
    "another way to pay": ({"nodes": {"a": {}}, "pay": "none"}, "unknown pay"),
    "an unknown shape": ("debat", "did you mean 'debate'"),
    "an option of another shape": ({"shape": "debate", "voters": 2}, "unknown option of debate"),
    "an option out of range": ({"shape": "debate", "debaters": 1}, "debaters must be an int from"),
    "an agent that is not there": ({"shape": "vote", "only": ["x"]}, "only must be some of"),
    "a part of a team's graph": ({"shape": "pipeline", "only": ["main"]}, "leave only="),
    "a shape of another kind": ({"shape": ["vote"]}, "unknown workflow"),
    "the agents of a shape": ({"shape": "vote", "agents": ["main"]}, "unknown option of vote"),
    "an option without a name": ({"shape": "vote", 3: 1}, "unknown option of vote '3'"),
    "a list of nodes": ({"nodes": ["a"]}, "nodes must be a mapping"),
    "an agent of another kind": ({"nodes": {"a": {"agent": 3}}}, "unknown agent of node 'a' 3"),
    "nodes of another kind": (Graph(nodes=3), "nodes of a Graph must be a tuple, got 3"),
    "a name for a node": (Graph(nodes=("a",)), "nodes of a Graph must be Nodes, got 'a'"),
    "steps of a Graph that are a number": (
        Graph((Node("a"),), steps=3),
        "steps of a Graph must be a tuple",
    ),
    "one name to read": (Graph((Node("a", reads="b"),)), "reads of node 'a' must be a tuple"),
    "a file that is not there": ("no/such.yaml", "workflow file 'no/such.yaml' cannot be read: No"),
    "anything else": (3, "a workflow is one of pipeline, "),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line(case):
    value, message = MISTAKES[case]
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        as_graph(value, AGENTS)
    assert "\n" not in str(caught.value)


def test_an_agent_that_nobody_plays_is_named_with_the_node_to_add():
    with pytest.raises(InvalidArgumentError, match=r"nobody plays 'aux': add .* aux: {}"):
        as_graph({"nodes": {"main": {}}}, ("aux", "main"))


def test_a_node_of_one_of_several_agents_must_say_which():
    with pytest.raises(InvalidArgumentError, match=r"'critic' must name the agent.*aux or main"):
        as_graph({"nodes": {"aux": {}, "main": {}, "critic": {}}}, ("aux", "main"))


def test_a_name_given_twice_is_refused():
    with pytest.raises(InvalidArgumentError, match="two nodes are named 'a'"):
        as_graph(Graph((Node("a"), Node("a"))), AGENTS)


def test_an_environment_refuses_a_mistake_before_it_is_made():
    with pytest.raises(UnknownNameError, match="did you mean 'debate'"):
        mlrl_envs.make("mlrl/math-v2", workflow="debates")
    with pytest.raises(InvalidArgumentError, match="needs a TextParallelEnv"):
        mlrl_envs.workflow(object(), "debate")


def test_steps_follow_from_who_reads_whom():
    nodes = {"plan": {}, "left": {"reads": "plan"}, "right": {"reads": "plan"}}
    graph = as_graph({"nodes": {**nodes, "join": {"reads": ["left", "right"]}}}, AGENTS)
    assert graph.steps == (("plan",), ("left", "right"), ("join",))
    assert [node.name for node in graph.nodes if node.plays] == ["join"]


def test_a_yaml_file_is_the_mapping_that_it_holds(tmp_path):
    file = tmp_path / "team.yaml"
    file.write_text("shape: critic\n")
    assert as_graph(str(file), AGENTS) == as_graph({"shape": "critic"}, AGENTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"- critic", "must hold a mapping with shape or nodes, got list"),
        (b"db_password: hunter2", "must hold a mapping with shape or nodes, got neither"),
        (b"db_password: hunter2\n nodes: [", "is no YAML: see line 2, column 7"),
        (b"nodes: {a: [", "is no YAML"),
        (b"\xff\xfe\x00", "is no YAML"),
        (b"", "got NoneType"),
        (b"[" * 5000, "is no YAML"),
    ],
)
def test_a_file_without_a_graph_is_one_line(tmp_path, text, message):
    (tmp_path / "team.yml").write_bytes(text)
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        as_graph(str(tmp_path / "team.yml"), AGENTS)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "steps",
    [
        ["c", "A", "B"],
        ["c", ["B", "A"]],
        ["c", "A", "c", "B", "A"],
        ["c", ["A", "c"], "c", "A", "B"],
    ],
)
def test_one_of_two_players_writes_if_the_verdict_stands_between_them(steps):
    nodes = {
        "c": {},
        "A": {"plays": True, "unless": {"c": "X"}},
        "B": {"plays": True, "when": {"c": "X"}},
    }
    assert as_graph({"nodes": nodes, "steps": steps}, AGENTS)


@pytest.mark.parametrize("steps", [["c", ["A", "c"], "B"], ["c", "B", "c", "A"]])
def test_a_verdict_may_change_before_the_other_player(steps):
    nodes = {
        "c": {},
        "A": {"plays": True, "unless": {"c": "X"}},
        "B": {"plays": True, "when": {"c": "X"}},
    }
    with pytest.raises(InvalidArgumentError, match="only under a condition"):
        as_graph({"nodes": nodes, "steps": steps}, AGENTS)

"""Steps, conditions and what is played, as functions of what was written."""

import pytest

from mlrl_envs.workflows import as_graph, choose, follow
from mlrl_envs.workflows.steps import verdict_of

AGENTS = ("main",)
LOOP = {
    "nodes": {
        "writer": {"reads": ["critic"], "plays": True},
        "critic": {"reads": ["writer"]},
    },
    "steps": [
        "writer",
        {"repeat": 3, "steps": ["critic", "writer"], "until": {"critic": "done"}},
    ],
}


def played(graph, answer):
    """Play a turn in which a function of node and step writes; return its progress."""
    written = []
    while asked := follow(graph, AGENTS, written).asked:
        written.append({name: answer(name, len(written)) for name in asked})
    return follow(graph, AGENTS, written)


@pytest.mark.parametrize(("last", "steps"), [(1, 2), (3, 4), (99, 7)])
def test_a_loop_ends_with_the_verdict_or_with_its_last_round(last, steps):
    graph = as_graph(LOOP, AGENTS)
    progress = played(graph, lambda name, step: "done" if step >= last else f"{name} {step}")
    assert len(progress.steps) == steps
    assert choose(graph, "main", progress)[0] == "writer"


def test_a_branch_is_taken_on_its_verdict_only():
    nodes = {
        "triage": {},
        "short": {"when": {"triage": "easy"}, "plays": True},
        "long": {"unless": {"triage": "easy"}, "plays": True},
    }
    graph = as_graph({"nodes": nodes}, AGENTS)
    for verdict, node in (("EASY", "short"), ("hard", "long"), ("", "long")):
        progress = played(graph, lambda name, _, said=verdict: said if name == "triage" else name)
        assert choose(graph, "main", progress) == (node, node)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It is fine.\nAPPROVED", "approved"),
        ("**Verdict: APPROVED.**\n\n```\n", "approved"),
        ("not approved", "not approved"),
        ("APPROVED\nexcept for line 3", "except for line 3"),
        ("verdict", "verdict"),
        ("", ""),
        ("\x00 \u200b", "\x00 \u200b".strip("\x00 \u200b")),
        ("Answer: -5", "answer: -5"),
    ],
)
def test_a_verdict_is_a_whole_last_line(text, verdict):
    assert verdict_of(text) == verdict


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (("7", "8", "8"), "voter_2"),
        (("7", "8", "9"), "voter_1"),
        (("I think\nAnswer: 7.", "8", "so\n**Answer: 7**"), "voter_1"),
        (("", "", "8"), "voter_1"),
    ],
)
def test_the_most_frequent_last_line_wins_and_the_first_of_equals(answers, winner):
    graph = as_graph("vote", AGENTS)
    texts = dict(zip(("voter_1", "voter_2", "voter_3"), answers, strict=True))
    node, text = choose(graph, "main", follow(graph, AGENTS, [texts]))
    assert (node, text) == (winner, texts[winner])


def test_nodes_of_agents_that_wait_are_not_asked():
    graph = as_graph("reflection", ("x", "y"))
    assert follow(graph, ("y",), []).asked == ("y_writer",)
    assert follow(graph, ("x", "y"), []).asked == ("x_writer", "y_writer")

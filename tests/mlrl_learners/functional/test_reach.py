import dataclasses
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.gae import TurnGae
from mlrl_learners.functional.reach import weighted_nodes
from mlrl_learners.functional.returns import joint_returns, rollout_groups
from mlrl_learners.types import Completion, JointStep, Node, Rollout

ENDS = ("goes on", "terminated", "truncated")


@st.composite
def trees(draw, depth=3, name="r"):
    """Whole trees of one agent: every joint action that goes on has a child."""
    ends = draw(st.lists(st.sampled_from(ENDS if depth > 1 else ENDS[1:]), min_size=1, max_size=3))
    steps = tuple(
        JointStep(
            samples={"a": j},
            rewards={"a": draw(st.floats(-3, 3))},
            components={},
            infos={},
            terminated=end == "terminated",
            truncated=end == "truncated",
            child=draw(trees(depth - 1, f"{name}.{j}")) if end == "goes on" else None,
        )
        for j, end in enumerate(ends)
    )
    answers = tuple(Completion(f"{name}:{j}") for j in range(len(steps)))
    return Node(name.count("."), {"a": name}, {"a": answers}, steps)


def chains(node):
    """Every chain that a tree can be thinned to, with its probability."""
    going_on = [j for j, step in enumerate(node.steps) if step.child is not None]
    if not going_on:
        return [(1.0, node)]
    found = []
    for drawn in going_on:
        for chance, child in chains(node.steps[drawn].child):
            steps = tuple(
                dataclasses.replace(step, child=child if j == drawn else None)
                for j, step in enumerate(node.steps)
            )
            found.append((chance / len(going_on), dataclasses.replace(node, steps=steps)))
    return found


def slow_reach(root):
    """The probability of reaching each node: a joint action of each node on the way, at random."""
    found = {root.observations["a"]: 1.0}
    for node in root.walk():
        for step in node.steps:
            if step.child is not None:
                here = found[node.observations["a"]]
                found[step.child.observations["a"]] = here / len(node.steps)
    return found


@given(tree=trees())
def test_a_node_of_a_tree_weighs_the_probability_of_reaching_it(tree):
    found = {node.observations["a"]: weight for node, weight in weighted_nodes(tree, "reach")}
    assert found == pytest.approx(slow_reach(tree))


@given(tree=trees())
def test_a_node_of_a_chain_weighs_the_same_in_expectation(tree):
    expected = dict.fromkeys(slow_reach(tree), 0.0)
    for chance, chain in chains(tree):
        for node, weight in weighted_nodes(chain, "reach"):
            expected[node.observations["a"]] += chance * weight
    assert expected == pytest.approx(slow_reach(tree))


@given(tree=trees())
def test_nodes_may_weigh_all_alike(tree):
    assert {weight for _, weight in weighted_nodes(tree, "nodes")} == {1.0}


@given(tree=trees(), gamma=st.floats(0, 1), baseline=st.floats(-5, 5))
def test_returns_of_a_chain_are_those_of_its_tree_in_expectation(tree, gamma, baseline):
    totals = [0.0] * len(tree.steps)
    for chance, chain in chains(tree):
        found = joint_returns(chain, "a", gamma, baseline)
        totals = [total + chance * value for total, value in zip(totals, found, strict=True)]
    assert totals == pytest.approx(joint_returns(tree, "a", gamma), abs=1e-9)


def leaving(stays):
    """Two agents; b goes on, and earns 4, only after the first `stays` of three joint actions."""
    last = JointStep({"a": 0, "b": 0}, {"a": 0.0, "b": 4.0}, {}, {}, True, False)
    child = {
        agents: Node(1, dict.fromkeys(agents, ""), {x: (Completion("x"),) for x in agents}, (
            dataclasses.replace(last, samples=dict.fromkeys(agents, 0),
                                rewards={x: last.rewards[x] for x in agents}),
        ))
        for agents in (("a", "b"), ("a",))
    }  # fmt: skip
    steps = tuple(
        JointStep(
            {"a": j, "b": j}, {"a": 0.0, "b": 0.0}, {}, {}, False, False,
            child[("a", "b") if j < stays else ("a",)],
        )
        for j in range(3)
    )  # fmt: skip
    answers = tuple(map(Completion, "012"))
    return Node(0, {"a": "", "b": ""}, {"a": answers, "b": answers}, steps)


@pytest.mark.parametrize("stays", [1, 2])
@pytest.mark.parametrize("estimate", ["returns", "advantages"])
def test_chains_have_no_bias_where_an_agent_leaves_after_some_joint_actions(stays, estimate):
    tree = leaving(stays)
    totals = [0.0] * 3
    for drawn in range(3):
        steps = tuple(
            step
            if j == drawn
            else dataclasses.replace(step, child=None, next_observations=step.child.observations)
            for j, step in enumerate(tree.steps)
        )
        chain = dataclasses.replace(tree, steps=steps)
        if estimate == "returns":
            found = joint_returns(chain, "b", 1.0, 1.5)
        else:
            found = TurnGae(lambda *_: 0.0, 1.0, 1.0).joint_advantages(chain, "b", 1.5)
        totals = [total + value / 3 for total, value in zip(totals, found, strict=True)]
    assert totals == pytest.approx([4.0 if j < stays else 0.0 for j in range(3)])
    parent = [sum(joint_returns(tree, "b", 1.0)) / 3]
    assert parent == pytest.approx([sum(totals) / 3])


@given(tree=trees(), gamma=st.floats(0, 1), baseline=st.floats(-5, 5))
def test_no_baseline_changes_the_mean_return_of_a_chain(tree, gamma, baseline):
    for _, chain in chains(tree):
        plain = joint_returns(chain, "a", gamma)
        found = joint_returns(chain, "a", gamma, baseline)
        assert sum(found) == pytest.approx(sum(plain), abs=1e-9)


def two_turns(name, followed, *, walked):
    """Two joint actions, of which one is walked on from and pays `followed` there."""
    last = JointStep({"a": 0}, {"a": followed}, {}, {}, terminated=True, truncated=False)
    child = Node(1, {"a": name}, {"a": (Completion("x"),)}, (last,))
    steps = tuple(
        JointStep({"a": j}, {"a": 0.0}, {}, {}, False, False, child if j == walked else None)
        for j in range(2)
    )
    root = Node(0, {"a": name}, {"a": (Completion("0"), Completion("1"))}, steps)
    return Rollout("me/task-v0", name, ("a",), root)


def returns_at_the_start(rollouts, turn_weights):
    groups = rollout_groups(rollouts, 1.0, turn_weights=turn_weights)
    return [group.returns for group in groups if group.turn == 0]


def test_the_baseline_of_a_chain_is_what_followed_in_the_others():
    rollouts = [
        two_turns("x", 1.0, walked=0),
        two_turns("y", 5.0, walked=1),
        two_turns("z", 3.0, walked=1),
    ]
    # b = (5 + 3) / 2 = 4 for the first: 4 + 2 * (1 - 4) for the walked one, 4 for the other.
    assert returns_at_the_start(rollouts, "reach") == [(-2.0, 4.0), (2.0, 8.0), (3.0, 3.0)]


def test_the_baseline_of_a_single_chain_is_0():
    assert returns_at_the_start([two_turns("x", 1.0, walked=0)], "reach") == [(2.0, 0.0)]


def test_where_nodes_weigh_alike_what_followed_is_credited_to_all_that_go_on():
    rollouts = [two_turns("x", 1.0, walked=0), two_turns("y", 5.0, walked=1)]
    assert returns_at_the_start(rollouts, "nodes") == [(1.0, 1.0), (5.0, 5.0)]


def test_the_mean_gradient_of_trees_and_chains_is_that_of_the_return():
    """A softmax over two picks; 1 pays 1 in turn 0 and costs 0.4 in turn 1: slope 0.6 p (1 - p)."""
    draw, p, size, gradient = random.Random(0), 0.3, 3, {"tree": [], "chain": []}

    def node(turn, branching):
        picks = [int(draw.random() < p) for _ in range(size)]
        walked = draw.randrange(size)
        steps = tuple(
            JointStep(
                {"a": j},
                {"a": pick * (1.0, -0.4)[turn]},
                {},
                {},
                terminated=turn == 1,
                truncated=False,
                child=node(1, branching)
                if turn == 0 and (branching == "tree" or j == walked)
                else None,
            )
            for j, pick in enumerate(picks)
        )
        return Node(turn, {"a": ""}, {"a": tuple(Completion(str(each)) for each in picks)}, steps)

    for branching in gradient:
        rollouts = [Rollout("me/task-v0", "0", ("a",), node(0, branching)) for _ in range(10_000)]
        per_tree = len(rollouts) * [0.0]
        groups = itertools.groupby(
            rollout_groups(rollouts, 1.0), key=lambda group, seen=[-1]: _count(group, seen)
        )
        for number, mine in groups:
            for group in mine:
                mean = sum(group.returns) / size
                per_tree[number] += sum(
                    group.weight * (value - mean) * (int(answer.text) - p) / (size - 1)
                    for value, answer in zip(group.returns, group.completions, strict=True)
                )
        mean = sum(per_tree) / len(per_tree)
        variance = sum((value - mean) ** 2 for value in per_tree) / len(per_tree)
        assert mean == pytest.approx(0.6 * p * (1 - p), abs=4 * (variance / len(per_tree)) ** 0.5)
        assert (variance / len(per_tree)) ** 0.5 < 0.01


def _count(group, seen):
    """Number rollouts by their first group."""
    seen[0] += group.turn == 0
    return seen[0]

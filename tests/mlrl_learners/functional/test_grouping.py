import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import NumericsError
from mlrl_learners.functional.grouping import (
    group_keys,
    grouped_advantages,
    statistic_weights,
)
from mlrl_learners.functional.returns import AnswerGroup, rollout_groups
from mlrl_learners.types import Completion, JointStep, Node, Rollout

GROUPS = ["node", "agent", "agent_turn", "task"]
AGENTS = ("a", "b")


def node(turn, acts, children, *, reward=0.0, over=True):
    """A node whose j-th joint action is the j-th answer of each agent and leads to children[j]."""
    steps = tuple(
        JointStep(
            samples=dict.fromkeys(acts, j),
            rewards=dict.fromkeys(AGENTS, reward if child is None and over else 0.0),
            components={},
            infos={},
            terminated=child is None and over,
            truncated=False,
            child=child,
        )
        for j, child in enumerate(children)
    )
    answers = tuple(Completion(f"{turn}.{j}") for j in range(len(children)))
    return Node(turn, dict.fromkeys(acts, ""), dict.fromkeys(acts, answers), steps)


def chain(acts_by_turn, reward, turn=0):
    """An episode with one answer per node."""
    rest = chain(acts_by_turn, reward, turn + 1) if turn + 1 < len(acts_by_turn) else None
    return node(turn, acts_by_turn[turn], [rest], reward=reward)


def rollout(root, task="t"):
    return Rollout("env", task, AGENTS, root)


@st.composite
def trees(draw, turn=0, size=2, last=2):
    """A tree in which agents take part in any turns; `a` acts at the root."""
    acts = draw(st.sampled_from([("a",), AGENTS] if turn == 0 else [("a",), ("b",), AGENTS]))
    children = [
        draw(trees(turn + 1, size, last)) if turn < last and draw(st.booleans()) else None
        for _ in range(size)
    ]
    return node(turn, acts, children, reward=draw(st.floats(-1, 1)))


@st.composite
def keyed_returns(draw):
    """Returns of nodes, their keys, and a weight of each answer."""
    count = draw(st.integers(1, 5))
    returns = [draw(st.lists(st.integers(-5, 5), min_size=1, max_size=3)) for _ in range(count)]
    keys = [draw(st.sampled_from("xy")) for _ in range(count)]
    weights = [[draw(st.floats(0.1, 2)) for _ in some] for some in returns]
    return [[float(value) for value in some] for some in returns], keys, weights


def slow_advantages(returns, keys, weights, epsilon):
    """The formulas, one answer at a time."""
    found = []
    for key, some in zip(keys, returns, strict=True):
        pairs = [
            (w, x)
            for other, xs, ws in zip(keys, returns, weights, strict=True)
            if other == key
            for w, x in zip(ws, xs, strict=True)
        ]
        total = sum(w for w, _ in pairs)
        mean = sum(w * x for w, x in pairs) / total
        if len({x for _, x in pairs}) == 1:
            found.append([0.0] * len(some))
            continue
        degrees = total - sum(w * w for w, _ in pairs) / total
        std = math.sqrt(sum(w * (x - mean) ** 2 for w, x in pairs) / degrees)
        found.append([(x - mean) / (std + epsilon) for x in some])
    return found


def flat(rows):
    return [value for row in rows for value in row]


@given(keyed_returns())
def test_advantages_equal_a_slow_reference(drawn):
    returns, keys, weights = drawn
    found = grouped_advantages(returns, keys, weights)
    assert flat(found) == pytest.approx(flat(slow_advantages(returns, keys, weights, 1e-6)))


@given(keyed_returns(), st.floats(0.1, 10))
def test_equal_weights_give_the_sample_deviation(drawn, weight):
    returns, keys, _ = drawn
    weights = [[weight] * len(some) for some in returns]
    found = grouped_advantages(returns, keys, weights, epsilon=0.0)
    for key in set(keys):
        values = flat(some for k, some in zip(keys, returns, strict=True) if k == key)
        if len(set(values)) > 1:
            mean, std = statistics.mean(values), statistics.stdev(values)
            scaled = flat(some for k, some in zip(keys, found, strict=True) if k == key)
            assert scaled == pytest.approx([(value - mean) / std for value in values])


@given(keyed_returns())
def test_weighted_advantages_of_a_group_sum_to_zero(drawn):
    returns, keys, weights = drawn
    found = grouped_advantages(returns, keys, weights, normalize_std=False)
    for key in set(keys):
        total = sum(
            w * x
            for k, ws, xs in zip(keys, weights, found, strict=True)
            if k == key
            for w, x in zip(ws, xs, strict=True)
        )
        assert total == pytest.approx(0.0, abs=1e-9)


def test_equal_returns_and_single_answers_give_exactly_zero():
    assert grouped_advantages([[0.1], [0.1, 0.1], [7.0]], ["x", "x", "y"]) == [[0], [0, 0], [0]]


def test_a_return_that_is_not_finite_is_refused():
    with pytest.raises(NumericsError, match="a return is nan"):
        grouped_advantages([[math.nan, 1.0]], ["x"])


def test_what_shares_a_group_is_the_node_the_agent_the_agents_turn_or_the_task():
    groups = [
        AnswerGroup(agent, turn, (), (), rollout=number)
        for number in (0, 1)
        for turn in (0, 1)
        for agent in AGENTS
    ]
    sizes = {}
    for group_by in GROUPS:
        for tasks in (None, ["t", "t"]):
            keys = group_keys(groups, group_by, tasks)
            sizes[group_by, tasks is None] = sorted(keys.count(key) for key in set(keys))
    assert sizes["node", False] == sizes["node", True] == [1] * 8
    assert sizes["agent", True] == [2] * 4
    assert sizes["agent", False] == [4] * 2
    assert sizes["agent_turn", True] == [1] * 8
    assert sizes["agent_turn", False] == [2] * 4
    assert sizes["task", True] == [4] * 2
    assert sizes["task", False] == [8]


def example():
    """Three episodes of a task: `a` acts once, thrice and once, `b` once in the second."""
    roots = [chain([("a",)], 1.0), chain([("a",), AGENTS, ("a",)], 0.0), chain([("a",)], 1.0)]
    rollouts = [rollout(root) for root in roots]
    return rollouts, list(rollout_groups(rollouts, 1.0))


@pytest.mark.parametrize(
    ("group_by", "weight_by", "mean", "std"),
    [
        # `a`: 1, 0, 0, 0, 1 by step; 1, 0, 1 by episode
        ("agent", "step", 2 / 5, math.sqrt((2 * 0.6**2 + 3 * 0.4**2) / 4)),
        ("agent", "trajectory", 2 / 3, None),
        # all: 1, 0, 0, 0, 0, 1 by step; 1, 0, 1 by episode
        ("task", "step", 2 / 6, math.sqrt((2 * (2 / 3) ** 2 + 4 * (1 / 3) ** 2) / 5)),
        ("task", "trajectory", 2 / 3, None),
        ("agent_turn", "trajectory", 2 / 3, math.sqrt((2 / 9 + 4 / 9) / 2)),  # of turn 0
    ],
)
def test_statistics_of_agents_and_tasks_computed_by_hand(group_by, weight_by, mean, std):
    rollouts, groups = example()
    keys = group_keys(groups, group_by, ["t"] * 3)
    weights = statistic_weights(rollouts, weight_by, group_by=group_by)
    returns = [group.returns for group in groups]
    (first,), *_ = grouped_advantages(returns, keys, weights, normalize_std=False)
    assert first == pytest.approx(1.0 - mean)
    if std is not None:
        (first,), *_ = grouped_advantages(returns, keys, weights)
        assert first == pytest.approx((1.0 - mean) / (std + 1e-6))


@pytest.mark.parametrize("group_by", ["agent", "task"])
@given(root=trees())
def test_every_episode_of_a_tree_counts_once(group_by, root):
    """The answers of an episode share a weight of 1, so that all of them have that of the root."""
    weights = statistic_weights([rollout(root)], "trajectory", group_by=group_by)
    groups = list(rollout_groups([rollout(root)], 1.0))
    if group_by == "task":
        assert sum(flat(weights)) == pytest.approx(len(root.steps))
    else:
        mine = [w for w, group in zip(weights, groups, strict=True) if group.agent == "a"]
        assert sum(flat(mine)) == pytest.approx(len(root.steps))


@given(root=trees())
def test_weights_are_in_the_order_of_the_groups(root):
    groups = list(rollout_groups([rollout(root)], 1.0))
    for weight_by in ("step", "trajectory"):
        for group_by in GROUPS:
            weights = statistic_weights([rollout(root)], weight_by, group_by=group_by)
            assert [len(w) for w in weights] == [len(group.completions) for group in groups]
    steps = statistic_weights([rollout(root)], "step")
    assert steps == [[group.weight] * len(group.completions) for group in groups]


def test_a_path_that_a_chain_did_not_continue_is_as_long_as_the_one_beside_it():
    child = node(1, ("a",), [None, None], reward=1.0)
    root = node(0, ("a",), [child, None], over=False)
    weights = statistic_weights([rollout(root)], "trajectory")
    assert weights == [[0.5, 0.5], [0.5, 0.5]]


def test_by_agent_the_agent_with_low_returns_has_no_drift():
    """Two agents with shared parameters and other pay: over a task, one is always below the mean.

    `b` earns 10 less than `a` whatever it does. By task, all of its advantages are negative.
    """
    returns = [[1.0, 2.0], [-9.0, -8.0]]
    groups = [AnswerGroup(agent, 0, (), tuple(r)) for agent, r in zip(AGENTS, returns, strict=True)]
    by_task, by_agent = (
        grouped_advantages(returns, group_keys(groups, kind)) for kind in ("task", "agent")
    )
    assert max(by_task[1]) < 0 < min(by_task[0])
    assert by_agent[0] == pytest.approx(by_agent[1])
    assert sum(by_agent[1]) == pytest.approx(0.0)

"""Groups of equal observations, and what an agent has earned before a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.grouping import anchored_advantages, node_contexts
from mlrl_learners.functional.returns import rollout_groups
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("a", "b")


def node(turn, acts, paid, children):
    """A node whose j-th joint action pays paid[j] to each agent and leads to children[j]."""
    steps = tuple(
        JointStep(
            samples=dict.fromkeys(acts, j),
            rewards=dict(zip(AGENTS, rewards, strict=True)),
            components={},
            infos={},
            terminated=child is None,
            truncated=False,
            child=child,
        )
        for j, (rewards, child) in enumerate(zip(paid, children, strict=True))
    )
    answers = tuple(Completion(f"{turn}.{j}") for j in range(len(children)))
    seen = {agent: f"{agent} in {turn}" for agent in acts}
    return Node(turn, seen, dict.fromkeys(acts, answers), steps)


def rollout(root):
    return Rollout("env", "task", AGENTS, root)


@st.composite
def trees(draw, turn=0):
    """A tree of at most three turns, in which agents take part in any turns."""
    acts = draw(st.sampled_from([("a",), ("b",), AGENTS]))
    paid = [[draw(st.floats(-3, 3)) for _ in AGENTS] for _ in range(2)]
    goes_on = [turn < 2 and draw(st.booleans()) for _ in range(2)]
    return node(turn, acts, paid, [draw(trees(turn + 1)) if more else None for more in goes_on])


@st.composite
def keyed_returns(draw):
    """Returns of the answers at nodes, and the observation of each node."""
    rows = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=3)
    returns = draw(st.lists(rows, min_size=1, max_size=5))
    return returns, [draw(st.sampled_from("xy")) for _ in returns]


def flat(rows):
    return [value for row in rows for value in row]


@given(drawn=keyed_returns(), weight=st.floats(0, 3))
def test_anchored_advantages_equal_a_slow_reference(drawn, weight):
    returns, anchors = drawn
    totals = [[float(number)] * len(some) for number, some in enumerate(returns)]
    found = anchored_advantages(
        totals, returns, ["t"] * len(returns), anchors, step_weight=weight, normalize_std=False
    )
    whole = flat(totals)
    for number, some in enumerate(returns):
        same = flat(
            r for r, anchor in zip(returns, anchors, strict=True) if anchor == anchors[number]
        )
        for place, value in enumerate(some):
            episode = totals[number][place] - sum(whole) / len(whole)
            step = value - sum(same) / len(same)
            assert found[number][place] == pytest.approx(episode + weight * step, abs=1e-9)


def test_an_observation_that_occurs_once_has_the_advantage_of_its_episode_alone():
    found = anchored_advantages([[1.0], [0.0]], [[5.0], [3.0]], ["t", "t"], ["here", "there"])
    assert found == [[0.5], [-0.5]]


def test_equal_observations_of_other_tasks_are_not_compared():
    found = anchored_advantages([[1.0], [0.0]], [[5.0], [3.0]], ["t", "u"], ["here", "here"])
    assert found == [[0.0], [0.0]]


def test_an_anchor_tells_a_good_step_of_a_failed_episode_from_a_bad_one():
    """Two failed episodes pass the same room; only one of them finds the key there."""
    episodes, steps = [[0.0], [0.0], [1.0]], [[0.4], [0.0], [1.0]]
    found = anchored_advantages(episodes, steps, ["t"] * 3, ["room", "room", "hall"])
    assert found[0][0] > found[1][0]


def test_answers_of_an_episode_share_its_weight_among_episodes():
    episodes, weights = [[1.0], [0.0], [0.0], [0.0]], [[1.0], *[[1 / 3]] * 3]
    found = anchored_advantages(
        episodes, [[0.0]] * 4, ["t"] * 4, list("abcd"), episode_weights=weights
    )
    assert flat(found) == pytest.approx([0.5, -0.5, -0.5, -0.5])


def slow_contexts(place, agent, earned=0.0):
    """Follow every path by itself, in the order of a walk."""
    if agent in place.completions:
        yield f"{agent} in {place.turn}", earned
    for step in place.steps:
        if step.child is not None:
            yield from slow_contexts(step.child, agent, earned + step.rewards[agent])


@given(root=trees())
def test_contexts_equal_a_slow_reference_in_the_order_of_the_groups(root):
    contexts, groups = node_contexts([rollout(root)]), list(rollout_groups([rollout(root)], 1.0))
    for agent in AGENTS:
        mine = [
            (context.observation, context.earned)
            for group, context in zip(groups, contexts, strict=True)
            if group.agent == agent
        ]
        assert mine == list(slow_contexts(root, agent))


def test_rewards_before_a_node_complete_the_return_of_the_episode():
    second = node(1, ("a",), [(2.0, 0.0), (3.0, 0.0)], [None, None])
    played = [rollout(node(0, ("a",), [(5.0, 0.0)], [second]))]
    totals = [
        [context.earned + value for value in group.returns]
        for context, group in zip(node_contexts(played), rollout_groups(played, 1.0), strict=True)
    ]
    assert totals == [[7.5], [7.0, 8.0]]

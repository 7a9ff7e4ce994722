import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.alignment import aligned_advantages, past_advantages
from mlrl_learners.types import Completion, JointStep, Node

AGENTS = ("me", "other")
numbers = st.floats(-3, 3)
PAY = {"CC": (3.0, 3.0), "CD": (0.0, 5.0), "DC": (5.0, 0.0), "DD": (1.0, 1.0)}
MOVES = list(itertools.product("CD", repeat=2))


def game(turns, turn=0):
    """Every course of the iterated prisoner's dilemma, as the cross product of two answers each."""
    answers = dict.fromkeys(AGENTS, (Completion("C"), Completion("D")))
    steps = tuple(
        JointStep(
            samples=dict(zip(AGENTS, ("CD".index(move) for move in moves), strict=True)),
            rewards=dict(zip(AGENTS, PAY["".join(moves)], strict=True)),
            components={},
            infos={},
            terminated=turn + 1 == turns,
            truncated=False,
            child=game(turns, turn + 1) if turn + 1 < turns else None,
        )
        for moves in MOVES
    )
    return Node(turn, dict.fromkeys(AGENTS, ""), answers, steps)


def advantages(node, agent):
    """Rewards minus their mean: what follows does not depend on moves of random players."""
    rewards = [step.rewards[agent] for step in node.steps]
    return [reward - sum(rewards) / len(rewards) for reward in rewards]


def paths(node, before=()):
    """Yield each node with the moves before it."""
    yield node, before
    for number, step in enumerate(node.steps):
        if step.child is not None:
            yield from paths(step.child, (*before, (node, number)))


@given(gamma=st.floats(0, 1))
def test_the_weight_of_a_node_equals_a_slow_reference(gamma):
    root = game(3)
    found = past_advantages(root, lambda node: advantages(node, "me"), gamma)
    for (node, weight), (other, before) in zip(found, paths(root), strict=True):
        turn = len(before)
        expected = sum(
            gamma ** (turn - k) * advantages(at, "me")[number]
            for k, (at, number) in enumerate(before)
        )
        assert node is other
        assert weight == pytest.approx(expected, abs=1e-9)


@given(
    rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4),
    past=numbers,
    beta=st.floats(0, 2),
)
def test_aligned_advantages_equal_a_slow_reference(rows, past, beta):
    own, first, second = (list(column) for column in zip(*rows, strict=True))
    found = aligned_advantages(own, [first, second], past, beta=beta)
    assert found == pytest.approx([a + beta * past * (b + c) for a, b, c in rows])


def test_without_a_past_or_without_weight_agents_learn_independently():
    assert aligned_advantages([1.0, -2.0], [[5.0, 7.0]], 0.0, beta=3.0) == [1.0, -2.0]
    assert aligned_advantages([1.0, -2.0], [[5.0, 7.0]], 9.0, beta=0.0) == [1.0, -2.0]


def test_a_case_computed_by_hand():
    """My advantage in turn 0 was 2 and gamma is 1/2, so that w = 1 in turn 1."""
    found = aligned_advantages([0.5, -0.5], [[4.0, -4.0]], 1.0, beta=0.25)
    assert found == [1.5, -1.5]


def gradients_of_cooperation(beta):
    """Return the exact gradient of my probability to cooperate in turn 1, by the moves before."""
    found = {}
    root = game(2)
    for node, past in past_advantages(root, lambda node: advantages(node, "me"), 1.0):
        if node is root:
            continue
        mine, theirs = advantages(node, "me"), advantages(node, "other")
        credited = aligned_advantages(mine, [theirs], past, beta=beta)
        scores = [1.0 if step.samples["me"] == 0 else -1.0 for step in node.steps]
        number = next(n for n, step in enumerate(root.steps) if step.child is node)
        gradient = sum(s * a for s, a in zip(scores, credited, strict=True)) / 8
        found["".join(MOVES[number])] = gradient
    return found


def test_independent_learners_defect_whatever_happened():
    assert all(gradient < 0 for gradient in gradients_of_cooperation(0.0).values())


def test_aligned_learners_answer_cooperation_with_cooperation_and_defection_with_defection():
    found = gradients_of_cooperation(1.0)
    assert {moves: gradient > 0 for moves, gradient in found.items()} == {
        "CC": True, "DC": True, "CD": False, "DD": False,
    }  # fmt: skip

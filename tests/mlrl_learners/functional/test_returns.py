from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.errors import ContractError
from mlrl_learners.errors import NumericsError
from mlrl_learners.functional.returns import (
    check_rollouts,
    joint_returns,
    rollout_groups,
    sample_returns,
)
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("a", "b")


def make_node(rewards, children=None, *, turn=0, samples=None, ended=()):
    """One node whose j-th joint action earns rewards[j] and leads to children[j]."""
    samples = samples or [(j, j) for j in range(len(rewards))]
    size = 1 + max(max(pair) for pair in samples)
    completions = tuple(Completion(f"{turn}.{j}", token_ids=(j,)) for j in range(size))
    steps = tuple(
        JointStep(
            samples=dict(zip(AGENTS, samples[j], strict=True)),
            rewards={"a": reward, "b": -reward},
            components={},
            infos={},
            terminated=j in ended,
            truncated=False,
            child=(children or {}).get(j),
        )
        for j, reward in enumerate(rewards)
    )
    return Node(turn, dict.fromkeys(AGENTS, ""), dict.fromkeys(AGENTS, completions), steps)


@given(
    first=st.lists(st.floats(-5, 5), min_size=2, max_size=3),
    second=st.lists(st.floats(-5, 5), min_size=2, max_size=3),
    gamma=st.floats(0, 1),
)
def test_a_tree_adds_the_discounted_mean_of_its_child(first, second, gamma):
    children = {j: make_node([r + j for r in second], turn=1) for j in range(len(first))}
    node = make_node(first, children)
    expected = [
        reward + gamma * sum(r + j for r in second) / len(second) for j, reward in enumerate(first)
    ]
    assert joint_returns(node, "a", gamma) == pytest.approx(expected)


def test_rewards_of_another_agent_are_not_mixed_in():
    assert joint_returns(make_node([1.0, 2.0]), "b", 1.0) == [-1.0, -2.0]


def test_a_chain_credits_what_followed_to_every_joint_action_that_went_on():
    child = make_node([0.4, 0.6], turn=1)
    node = make_node([0.1, 0.2, 1.0], {0: child}, ended={2})
    assert joint_returns(node, "a", 1.0) == pytest.approx([0.6, 0.7, 1.0])


def test_a_cross_sample_is_worth_the_mean_over_its_teammates_answers():
    samples = [(0, 0), (0, 1), (1, 0), (1, 1)]
    node = make_node([1.0, 2.0, 3.0, 6.0], samples=samples)
    assert sample_returns(node, "a", 1.0) == pytest.approx([1.5, 4.5])
    assert sample_returns(node, "b", 1.0) == pytest.approx([-2.0, -4.0])


def test_groups_never_mix_prompts_roles_or_turns():
    node = make_node([0.0, 1.0], {j: make_node([0.0, 1.0], turn=1) for j in range(2)})
    rollout = Rollout("me/task-v0", "0", AGENTS, node)
    groups = list(rollout_groups([rollout], 1.0))
    assert [(group.agent, group.turn) for group in groups] == [
        ("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 1), ("b", 1),
    ]  # fmt: skip
    assert all(len({c.text[0] for c in group.completions}) == 1 for group in groups)


ENDS = ("child", "terminated", "truncated", "unwalked")


@st.composite
def trees(draw, depth=3):
    """Trees, chains and what is between, of one agent."""
    ends = draw(st.lists(st.sampled_from(ENDS if depth > 1 else ENDS[1:]), min_size=1, max_size=3))
    steps = tuple(
        JointStep(
            samples={"a": j},
            rewards={"a": draw(st.floats(-3, 3))},
            components={},
            infos={},
            terminated=end == "terminated",
            truncated=end == "truncated",
            child=draw(trees(depth - 1)) if end == "child" else None,
        )
        for j, end in enumerate(ends)
    )
    answers = tuple(Completion(str(j)) for j in range(len(steps)))
    return Node(0, {"a": ""}, {"a": answers}, steps)


def lines(node, step):
    """Every line of play that `step` may begin, with its chance: [(chance, [reward, ...])].

    A joint action that was not walked further goes on as its walked siblings did.
    """
    walked = [s.child for s in node.steps if s.child]
    if step.terminated or step.truncated or not walked:
        return [(1.0, [step.rewards["a"]])]
    found = []
    followers = [step.child] if step.child else walked
    for child in followers:
        for following in child.steps:
            for chance, rewards in lines(child, following):
                share = chance / len(child.steps) / len(followers)
                found.append((share, [step.rewards["a"], *rewards]))
    return found


@given(tree=trees(), gamma=st.floats(0, 1))
def test_returns_equal_a_slow_reference_over_every_line_of_play(tree, gamma):
    expected = [
        sum(
            chance * sum(gamma**turn * reward for turn, reward in enumerate(rewards))
            for chance, rewards in lines(tree, step)
        )
        for step in tree.steps
    ]
    assert joint_returns(tree, "a", gamma) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_a_reward_that_is_no_number_is_named_with_its_place(bad):
    child = make_node([0.5, bad], turn=1)
    rollout = Rollout("me/task-v0", "7", AGENTS, make_node([0.0, 1.0], {1: child}))
    with pytest.raises(NumericsError, match=f"reward of 'a' in turn 1 of task '7' is {bad}"):
        check_rollouts([rollout])


@pytest.fixture
def scripted_rollout():
    node = Node(0, {"a": ""}, {"a": (Completion("yes"),)}, ())
    return Rollout("me/task-v0", "7", AGENTS, node)


def test_an_answer_without_tokens_is_named_with_its_place(scripted_rollout):
    with pytest.raises(ContractError, match="answer of 'a' in turn 0 of task '7' has no token_ids"):
        check_rollouts([scripted_rollout])


def test_an_opponent_may_answer_without_tokens(scripted_rollout):
    check_rollouts([replace(scripted_rollout, opponents={"a": "script"})])

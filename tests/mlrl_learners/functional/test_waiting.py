"""Agents that wait: their next decision is their next node; what arrives meanwhile is theirs."""

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.credit import continues_for, outcome_rewards
from mlrl_learners.functional.gae import TurnGae, chain_baselines
from mlrl_learners.functional.returns import joint_returns, rollout_groups, sample_returns
from mlrl_learners.types import Completion, JointStep, Node, Rollout

AGENTS = ("a", "b")
shares = st.floats(0, 1)


def value(agent, observations):
    """Any critic will do: a number for each text."""
    return random.Random(f"{agent}/{observations[agent]}").uniform(-2, 2)


def make_node(name, turn, acts, waits, rewards, children):
    """One node; its j-th joint action pays rewards[j] and leads to children[j], or ends."""
    steps = tuple(
        JointStep(
            samples=dict.fromkeys(acts, j),
            rewards=dict(zip((*acts, *waits), paid, strict=True)),
            components={},
            infos={},
            terminated=child is None,
            truncated=False,
            child=child,
        )
        for j, (paid, child) in enumerate(zip(rewards, children, strict=True))
    )
    answers = tuple(Completion(f"{name}.{j}") for j in range(len(steps)))
    return Node(
        turn, dict.fromkeys(acts, name), dict.fromkeys(acts, answers), steps,
        dict.fromkeys(waits, name),
    )  # fmt: skip


@st.composite
def trees(draw, name="", turn=0, depth=4, there=AGENTS):
    """A tree in which agents act, wait and leave; `a` acts at the root."""
    acts = draw(st.sets(st.sampled_from(there), min_size=1)) if turn else {"a"}
    acts = tuple(agent for agent in AGENTS if agent in acts)
    waits = tuple(agent for agent in there if agent not in acts)
    size = draw(st.integers(1, 3))
    rewards = [[draw(st.floats(-3, 3)) for _ in there] for _ in range(size)]
    children = []
    for j in range(size):
        staying = tuple(agent for agent in there if draw(st.integers(0, 4)))
        goes_on = staying and turn + 1 < depth and draw(st.booleans())
        children.append(
            draw(trees(f"{name}.{j}", turn + 1, depth, staying)) if goes_on else None
        )  # fmt: skip
    return make_node(name, turn, acts, waits, rewards, children)


def lines(node, step):
    """Every line of play that `step` begins, with its chance."""
    if step.child is None:
        return [(1.0, [(node, step)])]
    return [
        (chance / len(step.child.steps), [(node, step), *line])
        for following in step.child.steps
        for chance, line in lines(step.child, following)
    ]


def slow_advantage(line, agent, gamma, lam):
    """The sum over decisions k of lambda^k gamma^(t_k) d_k along one line of play."""
    times = [t for t, (node, _) in enumerate(line) if agent in node.observations]
    total = 0.0
    for k, t in enumerate(times):
        until = times[k + 1] if k + 1 < len(times) else len(line)
        rewards = [step.rewards.get(agent, 0.0) for _, step in line[t:until]]
        delta = sum(gamma**i * reward for i, reward in enumerate(rewards))
        if until < len(line):
            delta += gamma ** (until - t) * value(agent, line[until][0].observations)
        total += lam**k * gamma**t * (delta - value(agent, line[t][0].observations))
    return total


def slow_return(line, agent, gamma):
    return sum(gamma**t * step.rewards.get(agent, 0.0) for t, (_, step) in enumerate(line))


@given(tree=trees(), gamma=shares, lam=shares)
def test_advantages_and_returns_equal_a_slow_reference_over_every_line(tree, gamma, lam):
    found = TurnGae(value, gamma, lam).joint_advantages(tree, "a")
    expected = [
        sum(chance * slow_advantage(line, "a", gamma, lam) for chance, line in lines(tree, step))
        for step in tree.steps
    ]
    assert found == pytest.approx(expected, abs=1e-9)
    for agent in AGENTS:
        expected = [
            sum(chance * slow_return(line, agent, gamma) for chance, line in lines(tree, step))
            for step in tree.steps
        ]
        assert joint_returns(tree, agent, gamma) == pytest.approx(expected, abs=1e-9)


def cut(step):
    """Return the step as a chain keeps it that does not continue from it."""
    child = step.child
    if child is None:
        return step
    return dataclasses.replace(
        step, child=None, next_observations=child.observations, next_waiting=child.waiting
    )


def chains(node):
    """Every chain that a tree may be thinned to, with its chance."""
    going = [j for j, step in enumerate(node.steps) if step.child is not None]
    if not going:
        return [(1.0, node)]
    return [
        (chance / len(going), dataclasses.replace(node, steps=tuple(
            dataclasses.replace(step, child=child) if j == drawn else cut(step)
            for j, step in enumerate(node.steps)
        )))
        for drawn in going
        for chance, child in chains(node.steps[drawn].child)
    ]  # fmt: skip


@given(tree=trees(depth=3), gamma=shares, lam=shares, b=st.floats(-5, 5), w=st.floats(-5, 5))
def test_a_chain_is_its_tree_in_expectation(tree, gamma, lam, b, w):
    gae = TurnGae(value, gamma, lam)
    returns = [0.0] * len(tree.steps)
    advantages = [0.0] * len(tree.steps)
    for chance, chain in chains(tree):
        found = joint_returns(chain, "a", gamma, b)
        returns = [total + chance * x for total, x in zip(returns, found, strict=True)]
        found = gae.joint_advantages(chain, "a", b, waiting_baseline=w)
        advantages = [total + chance * x for total, x in zip(advantages, found, strict=True)]
    assert returns == pytest.approx(joint_returns(tree, "a", gamma), abs=1e-9)
    assert advantages == pytest.approx(gae.joint_advantages(tree, "a"), abs=1e-9)


def alternating():
    """`a` answers, then `b`, and both are paid 1 when `b` has answered; a chain of two turns."""
    child = make_node("b reads", 1, ("b",), ("a",), [[1.0, 1.0]] * 2, [None, None])
    node = make_node("a reads", 0, ("a",), ("b",), [[0.0, 0.0]] * 2, [child, child])
    return dataclasses.replace(node, steps=(node.steps[0], cut(node.steps[1])))


def test_equal_answers_in_a_chain_have_equal_returns():
    """An agent that was not asked next counted as gone: the returns were [1, 0]."""
    node = alternating()
    assert sample_returns(node, "a", 1.0) == [1.0, 1.0]
    assert sample_returns(node, "a", 1.0, baseline=1.0) == [1.0, 1.0]
    assert all(continues_for(step, "a") for step in node.steps)
    gae = TurnGae(lambda *_: 0.25, 1.0, 0.9)
    assert gae.joint_advantages(node, "a") == [0.75, 0.75]
    assert gae.joint_advantages(node, "a", 0.0, waiting_baseline=1.0) == [0.75, 0.75]


def test_two_chains_are_each_others_baseline_where_an_agent_waits():
    rollouts = [Rollout("e", str(i), AGENTS, alternating()) for i in range(2)]
    groups = [g for g in rollout_groups(rollouts, 1.0) if g.agent == "a"]
    assert [g.returns for g in groups] == [(1.0, 1.0)] * 2
    estimators = [TurnGae(lambda *_: 0.25, 1.0, 0.9)] * 2
    assert chain_baselines(rollouts, estimators, "a", waiting=True) == [{0: 1.0}] * 2
    assert chain_baselines(rollouts, estimators, "a") == [{}] * 2


def test_outcome_credit_keeps_the_last_reward_alone_though_it_comes_while_waiting():
    """`a` earned 5 in turn 0 and was not asked in turn 1: the 5 was kept."""
    child = make_node("b reads", 1, ("b",), ("a",), [[1.0, 2.0]], [None])
    node = make_node("a reads", 0, ("a",), ("b",), [[5.0, 7.0]] * 2, [child, child])
    root = outcome_rewards(Rollout("e", "0", AGENTS, node)).root
    assert [dict(step.rewards) for step in root.steps] == [{"a": 0.0, "b": 0.0}] * 2
    assert dict(root.steps[0].child.steps[0].rewards) == {"b": 1.0, "a": 2.0}
    assert joint_returns(root, "a", 0.5) == [1.0, 1.0]


def test_discounts_count_turns_of_the_episode():
    last = make_node("3", 2, ("a",), ("b",), [[8.0, 0.0]], [None])
    wait = make_node("2", 1, ("b",), ("a",), [[0.0, 4.0]], [last])
    node = make_node("1", 0, ("a",), ("b",), [[2.0, 0.0]], [wait])
    assert joint_returns(node, "a", 0.5) == [2.0 + 0.5 * 4.0 + 0.25 * 8.0]
    gae = TurnGae(lambda _, seen: {"1": 10.0, "3": 20.0}[seen["a"]], 0.5, 0.0)
    assert gae.joint_advantages(node, "a") == [2.0 + 0.5 * 4.0 + 0.25 * 20.0 - 10.0]


def test_critics_of_all_agents_see_who_waits_too():
    node = alternating()
    assert node.seen == {"a": "a reads", "b": "a reads"}
    assert node.steps[1].next_seen == {"b": "b reads", "a": "b reads"}
    silent = dataclasses.replace(node, waiting={"b": ""})  # the environment told b nothing
    assert silent.seen == {"a": "a reads"}

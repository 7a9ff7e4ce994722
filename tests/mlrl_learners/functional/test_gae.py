import dataclasses
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.functional.gae import TurnGae
from mlrl_learners.functional.returns import joint_returns, mean_by_sample
from mlrl_learners.types import Completion, JointStep, Node

AGENTS = ("a", "b")
ENDS = ("child", "terminated", "truncated", "unwalked", "unwalked, nothing read")
shares = st.floats(0, 1)


def value(agent, observations):
    """Any critic will do: a number for each text."""
    return random.Random(f"{agent}/{observations[agent]}").uniform(-2, 2)


def make_node(name, ends, rewards, children):
    """One node; its j-th joint action earns rewards[j] and goes on as ends[j] says."""
    steps = []
    for j, (end, reward) in enumerate(zip(ends, rewards, strict=True)):
        reads = end in ("truncated", "unwalked")
        steps.append(
            JointStep(
                samples=dict.fromkeys(AGENTS, j),
                rewards={"a": reward, "b": -reward},
                components={},
                infos={},
                terminated=end == "terminated",
                truncated=end == "truncated",
                child=children[j] if end == "child" else None,
                next_observations=dict.fromkeys(AGENTS, f"{name}.{j}") if reads else {},
            )
        )
    completions = tuple(Completion(f"{name}.{j}") for j in range(len(steps)))
    return Node(0, dict.fromkeys(AGENTS, name), dict.fromkeys(AGENTS, completions), tuple(steps))


@st.composite
def trees(draw, name="", depth=3, ends=ENDS):
    here = st.sampled_from(ends if depth > 1 else [end for end in ends if end != "child"])
    chosen = draw(st.lists(here, min_size=1, max_size=3))
    rewards = [draw(st.floats(-3, 3)) for _ in chosen]
    children = [
        draw(trees(f"{name}.{j}", depth - 1, ends)) if end == "child" else None
        for j, end in enumerate(chosen)
    ]
    return make_node(name, chosen, rewards, children)


def lines(node, step):
    """Every line of play that `step` may begin, with its chance: [(chance, [(node, step), ...])].

    A joint action that was not walked further goes on as its walked siblings did.
    """
    walked = [s.child for s in node.steps if s.child]
    if step.terminated or step.truncated or not walked:
        return [(1.0, [(node, step)])]
    followers = [step.child] if step.child else walked
    found = []
    for child in followers:
        for following in child.steps:
            for chance, line in lines(child, following):
                share = chance / len(child.steps) / len(followers)
                found.append((share, [(node, step), *line]))
    return found


def slow_next_value(node, step, agent, bootstrap):
    if step.terminated or (step.truncated and not bootstrap):
        return 0.0
    if step.child:
        return value(agent, step.child.observations)
    if step.next_observations:
        return value(agent, step.next_observations)
    walked = [value(agent, s.child.observations) for s in node.steps if s.child]
    return sum(walked) / len(walked) if walked and not step.truncated else 0.0


def slow_advantages(node, agent, gamma, lam, bootstrap):
    """The sum over turns of (gamma lambda)^t d_t, averaged over every line there is."""
    advantages = []
    for step in node.steps:
        total = 0.0
        for chance, line in lines(node, step):
            for t, (n, s) in enumerate(line):
                delta = s.rewards[agent] + gamma * slow_next_value(n, s, agent, bootstrap)
                total += chance * (gamma * lam) ** t * (delta - value(agent, n.observations))
        advantages.append(total)
    return advantages


@given(tree=trees(), gamma=shares, lam=shares, agent=st.sampled_from(AGENTS), cut=st.booleans())
def test_advantages_equal_a_slow_reference_over_every_line_of_play(tree, gamma, lam, agent, cut):
    found = TurnGae(value, gamma, lam, bootstrap=cut).joint_advantages(tree, agent)
    assert found == pytest.approx(slow_advantages(tree, agent, gamma, lam, cut), abs=1e-9)


@given(
    rewards=st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    gamma=shares,
    lam=shares,
    end=st.sampled_from(["terminated", "truncated"]),
)
def test_a_line_without_branches_is_the_textbooks_case(rewards, gamma, lam, end):
    node = None
    for t in reversed(range(len(rewards))):
        node = make_node(str(t), ["child" if node else end], [rewards[t]], [node])
    values = [value("a", {"a": str(t)}) for t in range(len(rewards))]
    after = value("a", {"a": f"{len(rewards) - 1}.0"}) if end == "truncated" else 0.0
    advantage = 0.0
    for reward, here in zip(reversed(rewards), reversed(values), strict=True):
        advantage = reward + gamma * after - here + gamma * lam * advantage
        after = here
    (found,) = TurnGae(value, gamma, lam, bootstrap=True).joint_advantages(node, "a")
    assert found == pytest.approx(advantage, abs=1e-9)


@given(tree=trees(), gamma=shares)
def test_a_critic_that_says_nothing_leaves_the_returns_of_magrpo(tree, gamma):
    found = TurnGae(lambda *_: 0.0, gamma, 1.0).joint_advantages(tree, "a")
    assert found == pytest.approx(joint_returns(tree, "a", gamma), abs=1e-9)


def one_step(end):
    return make_node("here", [end], [1.0], [None])


def test_a_line_cut_by_an_artificial_limit_goes_on_with_the_critics_value():
    gae = TurnGae(value, 0.9, 0.95, bootstrap=True)
    (found,) = gae.joint_advantages(one_step("truncated"), "a")
    after, here = value("a", {"a": "here.0"}), value("a", {"a": "here"})
    assert found == pytest.approx(1.0 + 0.9 * after - here)


@pytest.mark.parametrize(("end", "bootstraps"), [("terminated", True), ("truncated", False)])
def test_nothing_follows_where_the_task_ended(end, bootstraps):
    (found,) = TurnGae(value, 0.9, 0.95, bootstrap=bootstraps).joint_advantages(one_step(end), "a")
    assert found == pytest.approx(1.0 - value("a", {"a": "here"}))


def test_being_picked_by_a_chain_is_no_advantage_in_itself():
    child = make_node("next", ["terminated"], [5.0], [None])
    node = make_node("here", ["child", "unwalked"], [1.0, 1.0], [child, None])
    first, second = TurnGae(lambda *_: 0.0, 0.9, 0.95).joint_advantages(node, "a")
    assert first == pytest.approx(second)


def test_what_a_chain_walked_counts_for_the_joint_actions_that_it_stands_for():
    """E over the draw of d + A' is that of a tree: 2 * 1/2 for the walked one, 0 for the other."""
    children = [
        make_node(name, ["terminated"], [r], [None]) for name, r in (("x", 5.0), ("y", 3.0))
    ]
    tree = make_node("", ["child", "child"], [1.0, 2.0], children)
    expected = TurnGae(value, 0.9, 0.8).joint_advantages(tree, "a")
    totals = [0.0, 0.0]
    for drawn in range(2):
        steps = tuple(
            step
            if number == drawn
            else dataclasses.replace(step, child=None, next_observations=step.child.observations)
            for number, step in enumerate(tree.steps)
        )
        chain = dataclasses.replace(tree, steps=steps)
        found = TurnGae(value, 0.9, 0.8).joint_advantages(chain, "a", 0.7)
        totals = [total + each / 2 for total, each in zip(totals, found, strict=True)]
    assert totals == pytest.approx(expected)


def test_a_cross_sample_is_worth_the_mean_over_its_teammates_answers():
    pairs = list(itertools.product(range(2), repeat=2))
    node = make_node("here", ["terminated"] * 4, [1.0, 2.0, 3.0, 6.0], [None] * 4)
    steps = tuple(
        JointStep({"a": i, "b": j}, step.rewards, {}, {}, terminated=True, truncated=False)
        for (i, j), step in zip(pairs, node.steps, strict=True)
    )
    crossed = Node(0, node.observations, {a: node.completions[a][:2] for a in AGENTS}, steps)
    gae = TurnGae(lambda *_: 0.5, 0.9, 0.95)
    assert mean_by_sample(crossed, "a", gae.joint_advantages(crossed, "a")) == pytest.approx(
        [1.0, 4.0]
    )
    assert mean_by_sample(crossed, "b", gae.joint_advantages(crossed, "b")) == pytest.approx(
        [-2.5, -4.5]
    )


@given(tree=trees(), gamma=shares)
def test_lambda_zero_looks_one_step_ahead_only(tree, gamma):
    deltas = [
        step.rewards["a"]
        + gamma * slow_next_value(tree, step, "a", bootstrap=False)
        - value("a", tree.observations)
        for step in tree.steps
    ]
    found = TurnGae(value, gamma, 0.0).joint_advantages(tree, "a")
    assert found == pytest.approx(deltas, abs=1e-9)


@given(reward=st.floats(-3, 3), gamma=shares, lam=shares, walked=st.booleans())
def test_nothing_follows_for_an_agent_that_has_left(reward, gamma, lam, walked):
    """The other goes on to a turn of its own, walked or not."""
    child = make_node("child", ["terminated"], [5.0], [None])
    only_b = Node(
        1,
        {"b": "child"},
        {"b": child.completions["b"]},
        (dataclasses.replace(child.steps[0], samples={"b": 0}, rewards={"b": 5.0}),),
    )
    node = make_node("", ["child" if walked else "unwalked"], [reward], [only_b])
    if not walked:
        (step,) = node.steps
        node = dataclasses.replace(
            node, steps=(dataclasses.replace(step, next_observations={"b": "child"}),)
        )
    gae = TurnGae(value, gamma, lam)
    assert gae.joint_advantages(node, "a") == pytest.approx([reward - value("a", {"a": ""})])
    (others,) = gae.joint_advantages(node, "b")
    following = value("b", {"b": "child"})
    later = lam * (5.0 - following) if walked else 0.0
    expected = -reward + gamma * (following + later) - value("b", {"b": ""})
    assert others == pytest.approx(expected, abs=1e-9)

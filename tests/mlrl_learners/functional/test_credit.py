import itertools
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import group_advantages
from mlrl_learners.functional.credit import (
    credited_values,
    outcome_rewards,
    team_rewards,
    with_rewards,
)
from mlrl_learners.functional.presence import continues_for
from mlrl_learners.functional.returns import joint_returns, mean_by_sample, sample_returns
from mlrl_learners.types import Completion, JointStep, Node, Rollout

NAMES = ("a", "b", "c")
CREDITS = ["shared", "outcome", "difference", "leave_one_out", "team"]


def make_node(size, num_agents, values, *, mode="cross", turn=0, children=None):
    """Every combination of `size` answers of each agent, or the j-th with the j-th."""
    agents = NAMES[:num_agents]
    if mode == "cross":
        samples = list(itertools.product(range(size), repeat=num_agents))
    else:
        samples = [(j,) * num_agents for j in range(size)]
    steps = tuple(
        JointStep(
            samples=dict(zip(agents, combination, strict=True)),
            rewards=dict.fromkeys(agents, value),
            components={},
            infos={},
            terminated=not children,
            truncated=False,
            child=(children or {}).get(j),
        )
        for j, (combination, value) in enumerate(zip(samples, values, strict=True))
    )
    answers = tuple(Completion(f"{turn}.{j}") for j in range(size))
    return Node(turn, dict.fromkeys(agents, ""), dict.fromkeys(agents, answers), steps)


@st.composite
def crossed(draw):
    size, num_agents = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    count = size**num_agents
    values = draw(st.lists(st.floats(-5, 5), min_size=count, max_size=count))
    return make_node(size, num_agents, values), values


def slow_credits(node, agent, values, credit):
    """The formulas, one joint action at a time."""
    found = []
    for j, step in enumerate(node.steps):
        if credit in ("shared", "outcome", "team"):
            found.append(values[j])
            continue
        others = [
            values[k]
            for k, other in enumerate(node.steps)
            if k != j
            and (
                credit == "leave_one_out"
                or all(other.samples[w] == step.samples[w] for w in step.samples if w != agent)
            )
        ]
        found.append(values[j] - sum(others) / len(others))
    return found


@pytest.mark.parametrize("credit", CREDITS)
@given(drawn=crossed())
def test_credits_equal_a_slow_reference(credit, drawn):
    node, values = drawn
    for agent in node.completions:
        expected = slow_credits(node, agent, values, credit)
        assert credited_values(node, agent, values, credit) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("credit", ["difference", "leave_one_out"])
@given(value=st.floats(-1e6, 1e6), size=st.integers(2, 3), num_agents=st.integers(1, 3))
def test_equal_values_give_exactly_zero(credit, value, size, num_agents):
    values = [value] * size**num_agents
    node = make_node(size, num_agents, values)
    assert credited_values(node, "a", values, credit) == [0.0] * len(values)


@given(drawn=crossed())
def test_over_a_full_product_credits_are_scaled_distances_from_the_mean_of_the_group(drawn):
    node, values = drawn
    size, joint = len(node.completions["a"]), len(node.steps)
    plain = mean_by_sample(node, "a", values)
    centred = [value - sum(plain) / size for value in plain]
    for credit, scale in (
        ("difference", size / (size - 1)),
        ("leave_one_out", joint / (joint - 1)),
    ):
        found = mean_by_sample(node, "a", credited_values(node, "a", values, credit))
        assert found == pytest.approx([scale * value for value in centred], abs=1e-8)


@pytest.mark.parametrize("credit", CREDITS)
@given(drawn=crossed())
def test_relabelling_agents_relabels_their_credits(credit, drawn):
    node, values = drawn
    other = dict(zip(node.completions, reversed(node.completions), strict=True))
    steps = tuple(
        JointStep({other[w]: k for w, k in s.samples.items()}, {}, {}, {}, True, False)
        for s in node.steps
    )
    swapped = Node(0, node.observations, node.completions, steps)
    for agent in node.completions:
        mine = credited_values(node, agent, values, credit)
        assert credited_values(swapped, other[agent], values, credit) == mine


def test_what_a_teammate_earned_is_no_difference_of_mine():
    """Reward = f(mine) + g(theirs): the difference is in f alone, joint action by joint action."""
    mine, theirs = [0.0, 1.0, 5.0], [0.0, 100.0, -40.0]
    values = [f + g for f in mine for g in theirs]
    node = make_node(3, 2, values)
    expected = [f - sum(x for x in mine if x != f) / 2 for f in mine for _ in theirs]
    assert credited_values(node, "a", values, "difference") == pytest.approx(expected)


def test_a_difference_without_a_twin_is_a_typed_error():
    node = make_node(2, 2, [0.0, 1.0], mode="aligned", turn=3)
    with pytest.raises(
        ConfigError, match=r"answers of 'a' beside .* turn 3 .* group.joint_mode to cross"
    ):
        credited_values(node, "a", [0.0, 1.0], "difference")


def test_leave_one_out_takes_aligned_joint_actions_too():
    node = make_node(3, 2, [0.0, 1.0, 5.0], mode="aligned")
    assert credited_values(node, "b", [0.0, 1.0, 5.0], "leave_one_out") == [-3.0, -1.5, 4.5]


def test_only_how_a_line_ended_counts_as_its_outcome():
    child = make_node(2, 1, [3.0, 5.0], turn=1)
    node = make_node(2, 1, [100.0, 7.0], children={0: child, 1: None})
    (first, second) = node.steps
    second = JointStep(second.samples, second.rewards, {}, {}, terminated=True, truncated=False)
    rollout = Rollout("t", "0", ("a",), Node(0, {"a": ""}, node.completions, (first, second)))
    found = outcome_rewards(rollout).root
    assert joint_returns(found, "a", 1.0) == [4.0, 7.0]
    assert joint_returns(found, "a", 0.5) == [2.0, 7.0]
    assert rollout.root.steps[0].rewards == {"a": 100.0}  # what was played is left as it was


def test_an_agents_own_rewards_pass_through_untouched():
    node = make_node(2, 2, [1.0, 2.0, 3.0, 4.0])
    rollout = Rollout("t", "0", ("a", "b"), node)
    judged = with_rewards(rollout, lambda _, s, agent: s.rewards["a"] * (-1) ** (agent == "b"))
    assert sample_returns(judged.root, "a", 1.0) == [1.5, 3.5]
    assert sample_returns(judged.root, "b", 1.0) == [-2.0, -3.0]


@pytest.mark.parametrize(
    ("terminated", "truncated", "after", "expected"),
    [
        (True, False, {}, False),
        (False, True, {"a": "x"}, False),
        (False, False, {}, True),
        (False, False, {"a": "x"}, True),
        (False, False, {"b": "x"}, False),
    ],
)
def test_who_is_not_asked_again_has_left(terminated, truncated, after, expected):
    step = JointStep({}, {}, {}, {}, terminated, truncated, next_observations=after)
    assert continues_for(step, "a") == expected


@pytest.mark.parametrize("credit", ["difference", "leave_one_out"])
def test_credit_makes_a_reinforce_estimate_quieter_than_the_shared_reward(credit):
    """Two agents pick 0 or 1; a team is paid what each adds, and agent b adds a hundred times more.

    The gradient for the logit of `a` is the sum over answers of credit times the score 1/2 or
    -1/2, and its expectation is the same but for the scale of the credit.
    """

    def estimate(credit, draw):
        size = 4
        picks = [[draw.randint(0, 1) for _ in range(size)] for _ in range(2)]
        values = [x + 100.0 * y for x in picks[0] for y in picks[1]]
        node = make_node(size, 2, values)
        worth = mean_by_sample(node, "a", credited_values(node, "a", values, credit))
        scale = {"shared": 1.0, "difference": 3 / 4, "leave_one_out": 15 / 16}[credit]
        return sum(w * (x - 0.5) for w, x in zip(worth, picks[0], strict=True)) * scale / size

    ratios = []
    for seed in range(3):
        spreads = {}
        for each in ("shared", credit):
            draw = random.Random(seed)
            spreads[each] = statistics.stdev(estimate(each, draw) for _ in range(400))
        ratios.append(spreads[credit] / spreads["shared"])
    assert max(ratios) < 0.02


def test_a_group_relative_baseline_already_is_the_difference_of_a_full_product():
    values = [random.Random(7).uniform(-1, 1) for _ in range(9)]
    node = make_node(3, 2, values)
    shared = group_advantages(mean_by_sample(node, "a", values), "leave_one_out")
    found = mean_by_sample(node, "a", credited_values(node, "a", values, "difference"))
    assert found == pytest.approx(shared)
    assert math.fsum(found) == pytest.approx(0.0)


def test_team_rewards_are_the_mean_over_all_agents_also_over_those_that_have_left():
    paid = {"a": 5.0, "b": 1.0}
    step = JointStep({"a": 0, "b": 0}, paid, {}, {}, terminated=True, truncated=False)
    answers = dict.fromkeys(("a", "b"), (Completion("x"),))
    node = Node(0, dict.fromkeys(("a", "b"), ""), answers, (step,))
    for agents, mean in ((("a", "b"), 3.0), (("a", "b", "c"), 2.0)):
        found = team_rewards(Rollout("env", "task", agents, node))
        assert found.root.steps[0].rewards == {"a": mean, "b": mean}

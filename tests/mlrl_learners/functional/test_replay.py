import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.credit import credited_values
from mlrl_learners.functional.replay import replay_actions, replay_advantages
from mlrl_learners.functional.returns import joint_returns, mean_by_sample
from mlrl_learners.types import Completion, JointStep, Node


def make_node(actions, values, *, turn=0, children=None):
    """A node with these joint actions; the j-th pays values[j] to all and leads to children[j]."""
    agents = tuple(actions[0])
    steps = tuple(
        JointStep(
            samples=action,
            rewards=dict.fromkeys(("a", "b", "c"), value),
            components={},
            infos={},
            terminated=children is None,
            truncated=False,
            child=None if children is None else children[number],
        )
        for number, (action, value) in enumerate(zip(actions, values, strict=True))
    )
    answers = {
        agent: tuple(Completion(str(k)) for k in range(1 + max(x[agent] for x in actions)))
        for agent in agents
    }
    return Node(turn, dict.fromkeys(agents, ""), answers, steps)


def crossed(sizes):
    return [
        dict(zip(sizes, combination, strict=True))
        for combination in itertools.product(*map(range, sizes.values()))
    ]


@st.composite
def nodes(draw, design):
    count = draw(st.integers(1, 3))
    sizes = {agent: draw(st.integers(2, 3)) for agent in ("a", "b", "c")[:count]}
    actions = design(sizes)
    values = draw(st.lists(st.floats(-5, 5), min_size=len(actions), max_size=len(actions)))
    return make_node(actions, values), values


def slow_advantages(node, agent, values):
    """The formula, one answer and one context at a time."""
    found = []
    for answer in range(len(node.completions[agent])):
        terms = []
        for number, step in enumerate(node.steps):
            if step.samples[agent] != answer:
                continue
            others = [
                values[k]
                for k, other in enumerate(node.steps)
                if k != number
                and all(other.samples[w] == step.samples[w] for w in step.samples if w != agent)
            ]
            if others:
                terms.append(values[number] - sum(others) / len(others))
        found.append(sum(terms) / len(terms))
    return found


@pytest.mark.parametrize("design", [crossed, replay_actions])
@given(data=st.data())
def test_advantages_equal_a_slow_reference(design, data):
    node, values = data.draw(nodes(design))
    for agent in node.completions:
        expected = slow_advantages(node, agent, values)
        assert replay_advantages(node, agent, values) == pytest.approx(expected, abs=1e-9)


@given(drawn=nodes(crossed))
def test_over_a_full_product_replay_is_the_difference_credit(drawn):
    node, values = drawn
    for agent in node.completions:
        differences = credited_values(node, agent, values, "difference")
        expected = mean_by_sample(node, agent, differences)
        assert replay_advantages(node, agent, values) == pytest.approx(expected, abs=1e-9)


@given(drawn=nodes(replay_actions), shift=st.floats(-9, 9))
def test_what_the_context_caused_cancels(drawn, shift):
    node, values = drawn
    moved = replay_advantages(node, "a", [value + shift for value in values])
    assert moved == pytest.approx(replay_advantages(node, "a", values), abs=1e-9)


@given(value=st.floats(-1e6, 1e6), size=st.integers(2, 4))
def test_equal_values_give_exactly_zero(value, size):
    node = make_node(replay_actions({"a": size, "b": 2}), [value] * (size + 1))
    assert replay_advantages(node, "a", [value] * (size + 1)) == [0.0] * size


def test_an_answer_without_an_alternative_is_a_typed_error():
    node = make_node([{"a": 0, "b": 0}, {"a": 1, "b": 1}], [0.0, 1.0], turn=2)
    with pytest.raises(ConfigError, match=r"answers of 'a' in one context, and turn 2 .* cross"):
        replay_advantages(node, "a", [0.0, 1.0])


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 4), min_size=1))
def test_each_replayed_action_deviates_in_one_agent_at_most(sizes):
    actions = replay_actions(sizes)
    assert len(actions) == 1 + sum(size - 1 for size in sizes.values())
    assert all(sum(k > 0 for k in action.values()) <= 1 for action in actions)
    for agent, size in sizes.items():
        assert {action[agent] for action in actions} == set(range(size))


# Agent `a` plans, then agent `b` writes; the team is paid 10 x + y for picks x and y of 0 or 1.
# The gradient for the logit of a fair pick has the score pick - 1/2. All estimates use 32 scored
# episodes: 32 independent ones with a leave-one-out baseline, or 8 plans with 4 texts for each.


def less_others(values):
    return [value - (sum(values) - value) / (len(values) - 1) for value in values]


def estimate(picks, advantages):
    pairs = zip(picks, advantages, strict=True)
    return sum((pick - 0.5) * value for pick, value in pairs) / len(picks)


def shared_estimates(draw):
    picks = [(draw.randint(0, 1), draw.randint(0, 1)) for _ in range(32)]
    advantages = less_others([10.0 * x + y for x, y in picks])
    return tuple(estimate([pick[i] for pick in picks], advantages) for i in range(2))


def replay_estimates(draw):
    plans = [draw.randint(0, 1) for _ in range(8)]
    texts = [[draw.randint(0, 1) for _ in range(4)] for _ in plans]
    children = [
        make_node([{"b": k} for k in range(4)], [10.0 * x + y for y in row], turn=1)
        for x, row in zip(plans, texts, strict=True)
    ]
    root = make_node([{"a": k} for k in range(8)], [0.0] * 8, children=children)
    of_plans = replay_advantages(root, "a", joint_returns(root, "a", 1.0))
    of_texts = [replay_advantages(c, "b", joint_returns(c, "b", 1.0)) for c in children]
    writer = [estimate(row, values) for row, values in zip(texts, of_texts, strict=True)]
    return estimate(plans, of_plans), sum(writer) / len(writer)


def test_replay_is_unbiased_and_much_quieter_than_shared_credit_for_the_later_agent():
    draw = random.Random(0)
    shared = [shared_estimates(draw) for _ in range(600)]
    replayed = [replay_estimates(draw) for _ in range(600)]
    for agent, expected in ((0, 10 / 4), (1, 1 / 4)):
        means = statistics.fmean(row[agent] for row in replayed)
        spread = statistics.stdev(row[agent] for row in replayed) / 600**0.5
        assert means == pytest.approx(expected, abs=4 * spread)
    writer, planner = (
        [statistics.stdev(row[agent] for row in rows) for rows in (replayed, shared)]
        for agent in (1, 0)
    )
    assert writer[0] < 0.2 * writer[1]
    assert planner[0] > planner[1]  # 8 plans instead of 32


def test_replay_averages_what_later_agents_do_for_the_earlier_one():
    """With equal numbers of plans, the noise of the writer is averaged over its four texts."""
    draw = random.Random(1)
    weights = (0.1, 10.0)  # the plan matters little, the text much

    def spread(texts_each):
        found = []
        for _ in range(600):
            plans = [draw.randint(0, 1) for _ in range(8)]
            values = [
                weights[0] * x + weights[1] * statistics.fmean(
                    draw.randint(0, 1) for _ in range(texts_each)
                )
                for x in plans
            ]  # fmt: skip
            node = make_node([{"a": k} for k in range(8)], values)
            found.append(estimate(plans, replay_advantages(node, "a", values)))
        return statistics.stdev(found)

    assert spread(4) < 0.6 * spread(1)

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.advantages import group_advantages
from mlrl_learners.functional.components import (
    component_advantages,
    component_rewards,
    decoupled_advantages,
)
from mlrl_learners.functional.returns import sample_returns
from mlrl_learners.types import Completion, JointStep, Node, Rollout

PARTS = ("right", "form")


@st.composite
def groups_of_parts(draw):
    """Groups of answers with whole numbers for two parts."""
    groups = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(2, 4))
        values = st.lists(st.integers(-3, 3).map(float), min_size=size, max_size=size)
        groups.append({name: draw(values) for name in PARTS})
    return groups


def slow_sums(groups, weights, epsilon):
    found = []
    for group in groups:
        row = [0.0] * len(group[PARTS[0]])
        for name, values in group.items():
            mean, std = statistics.fmean(values), statistics.pstdev(values)
            for k, value in enumerate(values):
                row[k] += weights.get(name, 1.0) * (value - mean) / (std + epsilon)
        found.append(row)
    return found


@given(groups=groups_of_parts(), weight=st.floats(0, 3))
def test_sums_of_parts_equal_a_slow_reference(groups, weight):
    weights = {"form": weight}
    for group, expected in zip(groups, slow_sums(groups, weights, 1e-4), strict=True):
        assert component_advantages(group, weights) == pytest.approx(expected, abs=1e-9)


@given(groups=groups_of_parts(), weight=st.floats(0.5, 3))
def test_advantages_of_an_update_equal_a_slow_reference(groups, weight):
    sums = [x for row in slow_sums(groups, {"form": weight}, 1e-4) for x in row]
    found = [x for row in decoupled_advantages(groups, {"form": weight}) for x in row]
    mean, std = statistics.fmean(sums), statistics.pstdev(sums)
    if std > 1e-6:
        assert found == pytest.approx([(x - mean) / (std + 1e-8) for x in sums], abs=1e-6)


def test_one_part_is_the_normalised_advantage_of_grpo():
    values = [0.0, 1.0, 1.0, 5.0]
    expected = group_advantages(values, "mean", normalize_std=True)
    assert component_advantages({"right": values}, {}) == expected


def test_parts_without_spread_add_exactly_nothing():
    values = [0.0, 1.0, 3.0]
    alone = component_advantages({"right": values}, {})
    assert component_advantages({"right": values, "form": [0.1] * 3}, {}) == alone


def test_the_size_of_advantages_does_not_depend_on_the_number_of_parts():
    values = [0.0, 1.0, 2.0, 5.0]
    for count in (1, 2, 5):
        (found,) = decoupled_advantages([{str(part): values for part in range(count)}], {})
        assert statistics.pstdev(found) == pytest.approx(1.0, abs=1e-6)


def test_combinations_that_a_sum_cannot_tell_apart_have_different_advantages():
    """Figure 2 of the paper: groups of two answers that earn (0, 1), (0, 2) and (1, 2) in sum."""
    groups = [
        {"right": [0.0, 1.0], "form": [0.0, 0.0]},
        {"right": [0.0, 1.0], "form": [0.0, 1.0]},
        {"right": [0.0, 1.0], "form": [1.0, 1.0]},
    ]
    summed = [
        group_advantages(
            [sum(row) for row in zip(*group.values(), strict=True)], normalize_std=True
        )
        for group in groups
    ]
    decoupled = [component_advantages(group, {}) for group in groups]
    assert summed[0] == pytest.approx(summed[1], abs=1e-3)
    assert decoupled[1][1] == pytest.approx(2 * decoupled[0][1])
    assert decoupled[0] == decoupled[2]


def test_a_part_of_small_scale_counts_as_much_as_one_of_large_scale():
    found = component_advantages({"right": [0.0, 0.01], "form": [100.0, 0.0]}, {}, epsilon=1e-12)
    assert found == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_weight_for_an_unknown_part_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"no reward component 'colour'; there are \['right'\]"):
        component_advantages({"right": [0.0, 1.0]}, {"colour": 1.0})


def test_rewards_of_a_part_are_zero_where_it_is_missing():
    answers = {"a": (Completion("x"), Completion("y"))}
    steps = tuple(
        JointStep({"a": k}, {"a": 9.0}, {"a": parts}, {}, terminated=True, truncated=False)
        for k, parts in enumerate(({"right": 1.0, "form": 0.5}, {"form": 0.25}))
    )
    rollout = Rollout("env", "task", ("a",), Node(0, {"a": ""}, answers, steps))
    returns = {
        name: sample_returns(component_rewards(rollout, name).root, "a", 1.0) for name in PARTS
    }
    assert returns == {"right": [1.0, 0.0], "form": [0.5, 0.25]}
    assert not math.isnan(sum(component_advantages(returns, {})))

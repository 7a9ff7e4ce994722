import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import NumericsError
from mlrl_learners.functional.advantages import group_advantages, normalize

BASELINES = ["mean", "none", "leave_one_out", "max"]
returns_of_a_group = st.lists(st.floats(-10, 10), min_size=2, max_size=8)


def slow_advantages(returns, baseline):
    size = len(returns)
    if baseline == "none":
        return returns
    if baseline == "mean":
        return [value - sum(returns) / size for value in returns]
    if baseline == "max":
        return [value - max(returns) for value in returns]
    return [
        value - sum(other for j, other in enumerate(returns) if j != i) / (size - 1)
        for i, value in enumerate(returns)
    ]


@pytest.mark.parametrize("baseline", BASELINES)
@given(returns=returns_of_a_group)
def test_advantages_equal_a_slow_reference(baseline, returns):
    expected = slow_advantages(returns, baseline)
    assert group_advantages(returns, baseline) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("baseline", ["mean", "leave_one_out", "max"])
@given(value=st.floats(-1e6, 1e6), size=st.integers(1, 9))
def test_equal_rewards_give_exactly_zero(baseline, value, size):
    assert group_advantages([value] * size, baseline) == [0.0] * size


@given(returns=returns_of_a_group, order=st.randoms())
def test_permuting_a_group_permutes_its_advantages(returns, order):
    places = list(range(len(returns)))
    order.shuffle(places)
    permuted = group_advantages([returns[i] for i in places], "leave_one_out")
    straight = group_advantages(returns, "leave_one_out")
    assert permuted == pytest.approx([straight[i] for i in places], abs=1e-9)


def test_the_four_baselines_differ():
    advantages = {tuple(group_advantages([0.0, 1.0, 3.0], baseline)) for baseline in BASELINES}
    assert len(advantages) == 4


@given(returns=returns_of_a_group)
def test_leave_one_out_is_the_mean_advantage_scaled_by_g_over_g_minus_one(returns):
    scale = len(returns) / (len(returns) - 1)
    mean = group_advantages(returns, "mean")
    expected = [scale * value for value in mean]
    assert group_advantages(returns, "leave_one_out") == pytest.approx(expected, abs=1e-9)


def test_normalized_advantages_have_unit_spread():
    advantages = group_advantages([0.0, 2.0, 4.0, 6.0], "mean", normalize_std=True)
    spread = math.sqrt(sum(value**2 for value in advantages) / 4)
    assert spread == pytest.approx(1.0, abs=1e-3)


@given(values=st.lists(st.integers(-100, 100), min_size=2, max_size=8))
def test_normalized_values_have_mean_zero_and_deviation_one(values):
    found = normalize([value / 10 for value in values])
    spread = math.sqrt(sum(value**2 for value in found) / len(found))
    assert sum(found) == pytest.approx(0.0, abs=1e-6)
    assert spread == pytest.approx(float(len(set(values)) > 1), abs=1e-6)


@given(value=st.floats(-1e6, 1e6), size=st.integers(0, 5))
def test_equal_values_normalize_to_exactly_zero(value, size):
    assert normalize([value] * size) == [0.0] * size


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_is_never_taken_for_equal_to_others(bad):
    for function in (group_advantages, normalize):
        with pytest.raises(NumericsError, match=f"is {bad}"):
            function([1.0, bad, 1.0])

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy")

from mlrl_learners.figures.comparisons import (
    interquartile_mean,
    iqm_interval,
    mean_interval,
    paired_p_value,
    probability_interval,
    probability_of_improvement,
)

reward = st.floats(0, 1, allow_nan=False, width=32)
few = settings(max_examples=15)


def slow_iqm(values):
    cut = len(values) // 4
    middle = sorted(values)[cut : len(values) - cut]
    return math.fsum(middle) / len(middle)


def slow_p_value(ours, theirs):
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    found = abs(sum(gaps))
    flips = list(itertools.product((1, -1), repeat=len(gaps)))
    return sum(
        abs(sum(s * g for s, g in zip(f, gaps, strict=True))) >= found - 1e-12 for f in flips
    ) / len(flips)


@given(st.lists(st.lists(reward, min_size=1, max_size=3), min_size=1, max_size=9))
@few
def test_interquartile_mean_equals_its_slow_twin(tasks):
    values = [value for task in tasks for value in task]
    assert interquartile_mean(tasks) == pytest.approx(slow_iqm(values), abs=1e-7)


@given(st.lists(reward, min_size=2, max_size=12))
@few
def test_interval_holds_the_mean_or_comes_close(values):
    low, high = mean_interval([values])
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_interval_covers_the_truth_as_often_as_it_says():
    draw = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = mean_interval([draw.uniform(size=30).tolist()])
        hits += low <= 0.5 <= high
    assert 180 <= hits <= 200


def test_interval_draws_tasks_inside_their_environment():
    assert mean_interval([[0.0] * 5, [1.0] * 5]) == (0.5, 0.5)


def test_one_task_has_no_interval():
    assert mean_interval([[0.25]]) is None
    assert mean_interval([[0.25], [0.5]]) is None
    assert iqm_interval([[0.25, 0.75]]) is None
    assert probability_interval([([[1.0]], [[0.0]])]) is None


def test_one_task_of_one_environment_hides_no_spread_of_another():
    low, high = mean_interval([[0.5], [0.0, 0.4, 0.8, 1.0]])
    assert low < 0.525 < high


def test_same_seed_gives_the_same_interval():
    tasks = [[0.1, 0.4], [0.3, 0.2], [0.9, 0.8], [0.5, 0.5]]
    assert iqm_interval(tasks, seed=3) == iqm_interval(tasks, seed=3)


@given(st.lists(st.lists(reward, min_size=2, max_size=3), min_size=2, max_size=5))
@few
def test_nothing_improves_on_itself(tasks):
    assert probability_of_improvement(tasks, tasks) == pytest.approx(0.5)


def test_improvement_counts_pairs_and_halves_ties():
    assert probability_of_improvement([[1.0, 0.5]], [[0.5, 0.0]]) == pytest.approx(3.5 / 4)
    assert probability_of_improvement([[1.0], [0.0]], [[0.0], [1.0]]) == pytest.approx(0.5)
    assert probability_interval([([[1.0]] * 4, [[0.0]] * 4)]) == (1.0, 1.0)


@given(st.lists(st.tuples(reward, reward), min_size=2, max_size=8))
@few
def test_p_value_equals_its_slow_twin(pairs):
    ours, theirs = zip(*pairs, strict=True)
    assert paired_p_value([ours], [theirs]) == pytest.approx(slow_p_value(ours, theirs), abs=1e-6)


def test_p_value_of_no_difference_is_one():
    assert paired_p_value([[0.5, 0.1]], [[0.5, 0.1]]) == 1.0


def test_values_that_differ_by_rounding_are_ties():
    """A score of 0.9, paid at once or as gains over two turns."""
    whole, gains = [0.9] * 13, [0.2 + (0.9 - 0.2)] * 13
    assert whole != gains
    assert paired_p_value([whole], [gains]) == 1.0
    assert probability_of_improvement([whole], [gains]) == 0.5
    assert probability_interval([([whole] * 2, [gains] * 2)]) == (0.5, 0.5)


def test_p_value_of_a_single_task_is_one():
    assert paired_p_value([[1.0]], [[0.0]]) == 1.0


def test_p_value_is_small_where_every_task_is_better():
    assert paired_p_value([[0.9] * 12], [[0.1] * 12]) == pytest.approx(2 / 2**12)


def test_p_value_is_of_the_difference_in_which_every_environment_weighs_the_same():
    ours, theirs = [[1.0], [0.0] * 10], [[0.0], [0.2] * 10]
    first, second = [1.0 / 2, *[0.0] * 10], [0.0, *[0.2 / 20] * 10]
    assert paired_p_value(ours, theirs) == pytest.approx(slow_p_value(first, second))


@pytest.mark.parametrize("sizes", [[7], [1, 5], [3, 4, 5]])
def test_interval_equals_that_of_scipy(sizes):
    from scipy import stats

    draw = np.random.default_rng(0)
    groups = [draw.uniform(size=size) for size in sizes]
    found = stats.bootstrap(
        [values if len(values) > 1 else np.repeat(values, 2) for values in groups],
        lambda *drawn, axis=-1: np.mean([each.mean(axis=axis) for each in drawn], axis=0),
        n_resamples=2000,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(0),
    ).confidence_interval
    expected = (found.low, found.high)
    assert mean_interval([each.tolist() for each in groups]) == pytest.approx(expected, rel=1e-12)

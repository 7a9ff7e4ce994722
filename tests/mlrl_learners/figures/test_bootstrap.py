import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.figures.bootstrap import bootstrap_interval
from mlrl_learners.figures.means import component_means, mean, pass_at_k
from mlrl_learners.types import Completion, Episode, EpisodeTurn

finite = st.floats(-1e3, 1e3)


@given(n=st.integers(1, 7), k=st.integers(1, 7), data=st.data())
def test_pass_at_k_is_the_share_of_draws_that_hold_a_solved_episode(n, k, data):
    c = data.draw(st.integers(0, n))
    flags = [True] * c + [False] * (n - c)
    found = pass_at_k([(n, c)], k)
    assert list(found) == list(range(1, min(n, k) + 1))
    for size, value in found.items():
        draws = list(itertools.combinations(flags, size))
        assert value == pytest.approx(sum(any(draw) for draw in draws) / len(draws))


def test_pass_at_k_leaves_out_tasks_with_too_few_episodes():
    assert pass_at_k([(3, 0), (1, 1)], 3) == {1: 0.5, 2: 0.0, 3: 0.0}


@given(values=st.lists(finite, min_size=1, max_size=20), seed=st.integers(0, 9))
def test_the_interval_lies_within_the_values_and_is_the_same_for_the_same_seed(values, seed):
    low, high = bootstrap_interval(values, seed=seed)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert (low, high) == bootstrap_interval(values, seed=seed)


def test_the_interval_holds_the_mean_of_an_even_spread():
    values = [float(number) for number in range(50)]
    low, high = bootstrap_interval(values, seed=0)
    assert low < mean(values) < high
    assert 4 < high - low < 12


def test_components_add_up_to_the_mean_return():
    def turn(*rewards):
        parts = dict(zip("ab", rewards, strict=True))
        return EpisodeTurn(
            observations=dict.fromkeys("ab", ""),
            completions=dict.fromkeys("ab", Completion("")),
            rewards=parts,
            components={a: {"tests": r / 2, "format": r / 2} for a, r in parts.items()},
            infos={},
        )

    episodes = [
        Episode("x", 0, (turn(1.0, 2.0), turn(3.0, 4.0)), False, {"a": 4.0, "b": 6.0}),
        Episode("y", 0, (turn(1.0, 1.0),), False, {"a": 1.0, "b": 1.0}),
    ]
    parts = component_means(episodes)
    assert list(parts) == ["format", "tests"]
    assert sum(parts.values()) == pytest.approx((5.0 + 1.0) / 2)

import pytest

from mlrl_envs.datasets.draws import Draws

DRAWN = [72, 21, 37, 44, 23, 13]  # in every process, under every version of Python


def test_draws_never_change():
    draws = Draws("a key")
    assert [draws.integer(0, 99) for _ in range(6)] == DRAWN


def test_same_key_draws_the_same():
    assert Draws("k").integer(0, 10**9) == Draws("k").integer(0, 10**9)


@pytest.mark.parametrize(("low", "high"), [(3, 3), (-5, 5), (0, 1)])
def test_bounds_are_included_and_kept(low, high):
    draws = Draws(f"{low}/{high}")
    drawn = {draws.integer(low, high) for _ in range(300)}
    assert drawn == set(range(low, high + 1))


def test_two_picks_differ():
    draws = Draws("two")
    assert all(len(set(draws.pick_two("abc"))) == 2 for _ in range(100))

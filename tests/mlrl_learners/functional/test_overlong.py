import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.overlong import overlong_term


def slow_term(length, largest, buffer):
    """The three cases of the paper, in its order."""
    if length <= largest - buffer:
        return 0.0
    if length <= largest:
        return ((largest - buffer) - length) / buffer
    return -1.0


@given(length=st.integers(0, 300), largest=st.integers(1, 200), data=st.data())
def test_the_term_equals_a_slow_reference(length, largest, data):
    buffer = data.draw(st.integers(0, largest))
    found = overlong_term(length, largest, buffer)
    assert found == pytest.approx(slow_term(length, largest, buffer))
    assert -1 <= found <= 0


@pytest.mark.parametrize(
    ("length", "term"),
    [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0), (20481, -1.0)],
)
def test_values_with_the_lengths_of_the_paper(length, term):
    assert overlong_term(length, 20480, 4096) == term


@given(largest=st.integers(1, 200), data=st.data())
def test_one_more_token_costs_at_most_its_share_of_the_buffer(largest, data):
    buffer = data.draw(st.integers(1, largest))
    terms = [overlong_term(length, largest, buffer) for length in range(largest + 3)]
    steps = [before - after for before, after in itertools.pairwise(terms)]
    assert all(-1e-12 <= step <= 1 / buffer + 1e-12 for step in steps)


@pytest.mark.parametrize("buffer", [-1, 11])
def test_a_buffer_outside_the_token_limit_is_refused(buffer):
    with pytest.raises(ConfigError, match=rf"buffer must be in \[0, 10\].* got {buffer}"):
        overlong_term(5, 10, buffer)

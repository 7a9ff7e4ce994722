import copy
import pickle

import numpy as np
import pytest
from gymnasium.spaces import Text
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.spaces import MAX_SAMPLE_CHARS, SAMPLE_ALPHABET, UnicodeText


def test_space_is_a_gymnasium_text():
    assert isinstance(UnicodeText(), Text)


@given(st.text())
def test_any_unicode_text_is_inside(text):
    assert UnicodeText().contains(text)


@pytest.mark.parametrize("text", ["", " ", "\n", "\x00", "\u4e2d\U0001f642", "x" * 1_000_000])
def test_texts_that_gymnasium_leaves_out_are_inside(text):
    assert text in UnicodeText()


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "x" * 1_000_001, b"x", 3, None, ["x"]])
def test_lone_surrogates_long_texts_and_other_types_are_outside(value):
    assert value not in UnicodeText()


def test_shortest_length_is_kept():
    space = UnicodeText(max_length=5, min_length=3, seed=0)
    assert "ab" not in space
    assert all(3 <= len(space.sample()) <= 5 for _ in range(20))


@pytest.mark.parametrize("bounds", [(-1, 5), (6, 5)])
def test_senseless_bounds_raise(bounds):
    with pytest.raises(ValueError, match="min_length"):
        UnicodeText(max_length=bounds[1], min_length=bounds[0])


def test_samples_are_inside_short_and_the_same_for_a_seed():
    first, second = UnicodeText(seed=5), UnicodeText(seed=5)
    samples = [first.sample() for _ in range(50)]
    assert samples == [second.sample() for _ in range(50)]
    assert all(sample in first and len(sample) <= MAX_SAMPLE_CHARS for sample in samples)


def test_masks_choose_length_and_letters():
    space = UnicodeText(seed=0)
    mask = np.array([char == "a" for char in SAMPLE_ALPHABET], dtype=np.int8)
    assert space.sample(mask=(4, mask)) == "aaaa"
    assert set(space.sample(mask=(None, mask))) <= {"a"}


def test_repr_is_short():
    assert repr(UnicodeText(10)) == "UnicodeText(0, 10)"


def test_equality_is_by_bounds():
    assert UnicodeText(10) == UnicodeText(10, seed=3)
    assert UnicodeText(10) != UnicodeText(11)
    assert UnicodeText(10) != Text(10)


def test_copies_and_pickles_sample_alike():
    space = UnicodeText(seed=1)
    space.sample()
    deep, pickled = copy.deepcopy(space), pickle.loads(pickle.dumps(space))
    assert space.sample() == deep.sample() == pickled.sample()


@pytest.mark.timeout(60)
def test_contains_reads_long_texts_quickly():
    space, text = UnicodeText(), "é" * 1_000_000
    assert text in space

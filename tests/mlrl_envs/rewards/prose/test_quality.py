import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.prose import clean_length, order_of, prose_quality, ramp, stem
from mlrl_envs.rewards.prose.order import TABLE, TABLE_SHA256, count_pairs
from mlrl_envs.testing import JUNK_TEXTS

PROSE = {
    "plain": "The fox crossed the frozen river at night. It carried a letter for the old miller, "
    "who had not heard from his daughter since autumn.",
    "dialogue": '"Where are you going?" asked the boy. "Home," said the whale, "before the tide '
    'turns and the harbour closes." He waved until she was gone.',
    "long sentence": "Far above the valley, where the snow never melts and the wind speaks in many "
    "voices, an old woman keeps a small inn for travellers who have lost their way.",
    "names and numbers": "In 1925 Captain O'Neil sailed from Saint-Malo with 40 men. They wanted "
    "to find the island that moves with the tide, and they were never seen again.",
}


@pytest.mark.parametrize("name", PROSE)
def test_prose_passes(name):
    assert prose_quality(PROSE[name]) > 0.8


@pytest.mark.parametrize("name", PROSE)
def test_shuffled_words_do_not(name):
    for seed in range(20):
        words = PROSE[name].split()
        random.Random(seed).shuffle(words)
        assert prose_quality(" ".join(words)) < 0.5


@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_does_not(text):
    assert prose_quality(text) < 0.05


def test_disguised_letters_do_not():
    assert prose_quality(PROSE["plain"].replace("o", "\u043e")) == 0.0


def test_frames_with_other_content_words_do_not():
    nouns = ["dog", "bone", "cat", "tree", "boat", "lake", "king", "crown", "bird", "nest"]
    text = " ".join(f"The {a} of the {b} is in the {a}." for a in nouns for b in nouns[:3])
    assert prose_quality(text) == 0.0


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_a_quality_between_nothing_and_all(text):
    assert 0.0 <= prose_quality(text) <= 1.0


def test_order_is_counted_in_texts_of_people():
    assert order_of(PROSE["plain"]) > 0.2 > -0.2 > order_of("of the the to a and and is of in the")
    assert hashlib.sha256(TABLE.read_bytes()).hexdigest() == TABLE_SHA256


def test_pairs_that_occur_once_are_not_counted():
    assert count_pairs(["the dog", "the cat", "a dog"])["the"] == {"~": 2}


@pytest.mark.parametrize(
    ("value", "low", "high", "result"),
    [(0, 0, 1, 0.0), (2, 0, 1, 1.0), (0.5, 0, 1, 0.5), (0.25, 1, 0, 0.75), (3, 1, 0, 0.0)],
)
def test_ramp(value, low, high, result):
    assert ramp(value, low, high) == result


@pytest.mark.parametrize(
    ("word", "root"),
    [("cities", "city"), ("repairs", "repair"), ("repairing", "repair"), ("stopped", "stop")],
)
def test_stem(word, root):
    assert stem(word) == root


def test_clean_length_folds_white_space():
    assert clean_length(" a \n\n b ") == 3

import hashlib
import random
import textwrap

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


@pytest.mark.parametrize("width", [60, 72, 80])
def test_wrapped_lines_are_no_ends_of_sentences(width):
    for text in map(" ".join, map(str.split, PROSE.values())):
        assert order_of(textwrap.fill(text, width)) == pytest.approx(order_of(text))


def test_lines_of_a_list_or_below_a_heading_are_apart():
    for text in ("The lighthouse\nThe wind is cold today", "a b c d " * 6 + "\n2. the wind"):
        assert order_of(text) != order_of(text.replace("\n", " "))


@pytest.mark.parametrize(
    "form",
    ["## The lamp\n\n{}", "**The** lamp. {}", "*{}*", "```\n{}\n```", "\ufeff{}", "> {}"],
)
def test_marks_of_markdown_cost_nothing(form):
    text = "The keeper of the light sees a boat in the storm, and he goes down to help it."
    assert prose_quality(form.format(text)) == pytest.approx(prose_quality(text), abs=0.02)


@pytest.mark.parametrize("bullet", "-+*\u2022")
def test_an_item_of_a_list_is_less_than_prose(bullet):
    assert prose_quality(f"{bullet} {PROSE['plain']}") < 0.95 * prose_quality(PROSE["plain"])


def test_names_with_vietnamese_letters_are_latin():
    text = "Nguy\u1ec5n Th\u1ecb H\u1ea1nh mends the sails of a city, and today she finds a tear."
    assert prose_quality(text) > 0.9


@pytest.mark.timeout(10)
def test_runs_of_combining_marks_are_read_in_linear_time():
    text = "The a" + "\u0301\u0327" * 10_000
    assert prose_quality(text) == prose_quality(text + " ")


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

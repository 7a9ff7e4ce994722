import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.prose.quality import (
    clean_length,
    content_stems,
    copied_share,
    prose_quality,
    ramp,
    stem,
)
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
    assert prose_quality(PROSE[name], least_words=12) > 0.6


def test_a_sentence_cut_off_costs_something_but_not_all():
    cut = (
        PROSE["plain"] + " When the painter came from the south, the children followed her through"
    )
    assert 0.5 < prose_quality(cut, least_words=12) < prose_quality(PROSE["plain"], least_words=12)


@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_does_not(text):
    start = time.perf_counter()
    assert prose_quality(text, least_words=12) < 0.05
    assert time.perf_counter() - start < 1.0


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_a_quality_between_nothing_and_all(text):
    assert 0.0 <= prose_quality(text, least_words=12) <= 1.0
    assert 0.0 <= copied_share(text, text[::-1]) <= 1.0


@pytest.mark.parametrize("mark", [*".!? \n", "..", ". .", '".', "a. "])
def test_text_of_marks_is_survived(mark):
    assert prose_quality(mark * 300, least_words=12) < 0.05


@pytest.mark.parametrize(
    ("value", "low", "high", "result"),
    [(0, 1, 2, 0), (1, 1, 2, 0), (1.5, 1, 2, 0.5), (2, 1, 2, 1), (9, 1, 2, 1), (1.5, 2, 1, 0.5),
     (3, 2, 1, 0), (0, 2, 1, 1)],
)  # fmt: skip
def test_ramp(value, low, high, result):
    assert ramp(value, low, high) == result


def test_white_space_does_not_count_as_length():
    assert clean_length("  a \n\n b\t") == 3


@pytest.mark.parametrize(
    ("words", "root"),
    [
        (("city", "cities"), "city"),
        (("repair", "repairs", "repaired", "repairing"), "repair"),
        (("cloud", "clouds"), "cloud"),
        (("bloom", "blooms", "blooming"), "bloom"),
        (("describe", "described", "describing"), "describ"),
        (("run", "running"), "run"),
    ],
)
def test_forms_of_a_word_share_a_stem(words, root):
    assert {stem(word) for word in words} == {root}


def test_content_leaves_function_words_and_numbers_out():
    assert content_stems("The cities of 1925 were under the clouds") == {"city", "cloud"}


def test_copy_is_measured_by_word_runs():
    source = "one two three four five six seven eight"
    assert copied_share(source, source) == 1.0
    assert copied_share("eight seven six five four", source) == 0.0
    assert copied_share("one two three four and then five", source) == pytest.approx(0.25)
    assert copied_share("too short", source) == 0.0

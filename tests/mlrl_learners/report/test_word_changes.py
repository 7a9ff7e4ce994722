import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.report.word_changes import beside, changes

TEXT = st.text(st.sampled_from("ab<&\n "), max_size=40)


def plain(markup):
    return html.unescape(re.sub("<[^>]*>", "", markup))


@given(TEXT, TEXT)
def test_both_texts_are_shown_whole(left, right):
    assert tuple(map(plain, beside(left, right))) == (left, right)


@given(TEXT, TEXT)
def test_what_was_added_and_removed_gives_either_text(before, after):
    shown = changes(before, after, "turn 1").partition('class="prose text">')[2]
    assert plain(re.sub("<del>.*?</del>", "", shown, flags=re.DOTALL)).split() == after.split()


def test_words_that_differ_are_marked():
    left, right = beside("one two three", "one four three")
    assert "<mark>two</mark>" in left
    assert "<mark>four</mark>" in right
    assert left.count("<mark>") == 1


@pytest.mark.parametrize("word", ["a", "a b"])
def test_long_texts_are_compared_in_part(word):
    left, right = beside(f"{word} " * 5000, f"{word} " * 4000)
    assert "The first 800 words are compared." in left
    assert plain(right).startswith("a ")

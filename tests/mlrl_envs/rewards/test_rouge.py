import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.errors import MissingPackageError
from mlrl_envs.rewards import rouge
from mlrl_envs.rewards.rouge import copying, near_share, overlap

SOURCE = "The goat ate my tomatoes at night. My neighbour owns the goat."


def test_a_text_that_says_the_same_shares_its_content():
    same = overlap("At night the goats were eating tomatoes.", SOURCE)
    assert same.precision == 0.75  # night, goat, tomato; not eat for ate
    assert same.common == 3
    assert same.source_words == 7


def test_a_text_about_something_else_shares_nothing():
    other = overlap("The of and to my at.", SOURCE)
    assert (other.precision, other.common, other.order) == (0.0, 0.0, 0.0)


def test_repeated_words_count_as_often_as_the_source_has_them():
    assert overlap("goat goat goat goat", SOURCE).precision == 0.5


def test_order_tells_a_text_from_its_reverse():
    forward, backward = overlap("goat tomatoes night", SOURCE), overlap("night tomatoes", SOURCE)
    assert forward.order == 1.0
    assert backward.order == 0.5


def test_in_step_sees_a_copy_with_gaps():
    thinned = copying("The goat my tomatoes night neighbour goat.", SOURCE)
    assert (thinned.runs, thinned.in_step) == (0.0, 1.0)


def test_runs_see_a_copy_in_another_order():
    turned = copying("My neighbour owns the goat. The goat ate my tomatoes at night.", SOURCE)
    assert turned.runs == 2 / 3
    assert turned.in_step < 0.6


def test_a_sentence_is_near_the_one_it_was_taken_from_wherever_that_stands():
    swapped = "The neighbour owns that goat. The goat had eaten my tomatoes at night."
    assert near_share(swapped, SOURCE) == (3 + 6) / 13
    assert near_share("An animal spoiled what grew in our garden.", SOURCE) == 0.0


@pytest.mark.parametrize("text", ["", "\u4e2d\u6587", "\ud800", "\0", "a" * 10**6, "goat " * 10**5])
def test_strange_texts_are_survived(text):
    assert 0.0 <= overlap(text, SOURCE).precision <= 1.0
    assert 0.0 <= copying(text, SOURCE).runs <= 1.0
    assert 0.0 <= near_share(text, SOURCE) <= 1.0


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=())), st.text(st.characters()))
def test_figures_are_shares(text, source):
    found, copied = overlap(text, source), copying(text, source)
    near = near_share(text, source)
    shares = (found.precision, found.order, copied.runs, copied.in_step, near)
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in shares)


@pytest.fixture
def without_package(monkeypatch):
    rouge._scorers.cache_clear()
    monkeypatch.setitem(sys.modules, "rouge_score_rs.rouge_scorer", None)
    yield
    rouge._scorers.cache_clear()


@pytest.mark.parametrize("env_id", ["mlrl/tldr-v0", "mlrl/arxiv-v0"])
def test_a_missing_package_is_named_when_the_environment_is_made(env_id, without_package):
    with pytest.raises(MissingPackageError, match=r"pip install 'mlrl\[tasks\]'"):
        mlrl_envs.make(env_id, split="sample")
    mlrl_envs.make(env_id, split="sample", reward="paper")

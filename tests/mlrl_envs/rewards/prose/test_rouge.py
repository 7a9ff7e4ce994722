import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score_rs.rouge_scorer import RougeScorer

import mlrl_envs
from mlrl_envs.errors import MissingPackageError
from mlrl_envs.rewards.prose import rouge
from mlrl_envs.rewards.prose.english import FUNCTION_WORDS
from mlrl_envs.rewards.prose.rouge import copying, near_share, overlap, pairs_share

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


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=())), st.text(st.characters()))
def test_figures_are_shares(text, source):
    found, copied = overlap(text, source), copying(text, source)
    near = near_share(text, source)
    shares = (found.precision, found.order, copied.runs, copied.in_step, near)
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in shares)


TEXTS = st.lists(
    st.sampled_from(
        ["the", "goat", "goats", "eating", "ate", "night.", "why?", "a_b", "\u0130n", "na\u00efve"]
    )
    | st.text(st.characters(exclude_categories=()), max_size=4),
    max_size=60,
).map(lambda parts: " ".join(parts).replace("why? ", "why?\n"))


@given(TEXTS, TEXTS)
def test_figures_are_those_of_rouge_to_the_last_bit(text, source):
    def content(words):
        words = re.findall("[a-z0-9]+", words.lower())
        return " ".join(word for word in words if len(word) > 1 and word not in FUNCTION_WORDS)

    stemmed = RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    scores = stemmed.score(content(source), content(text))
    found, size = overlap(text, source), content(source).count(" ") + 1
    assert found.precision == scores["rouge1"].precision
    assert found.common == scores["rouge1"].recall * size
    assert found.source_words == size
    if found.precision:
        assert found.order == scores["rougeL"].precision / scores["rouge1"].precision
    scores = RougeScorer(["rouge2", "rouge4", "rougeL"]).score(source, text)
    copied = copying(text, source)
    shares = (pairs_share(text, source), copied.runs, copied.in_step)
    assert shares == tuple(score.precision for score in scores.values())


@given(TEXTS, TEXTS)
def test_nearness_is_that_of_rouge_sentence_by_sentence(text, source):
    def sentences(words):
        parts = (part.lower() for part in re.split(r"(?<=[.!?])\s+|\n+", words))
        return [part for part in parts if re.search("[a-z0-9]", part)][:64]

    scorer, near, total = RougeScorer(["rougeL"]), 0.0, 0.0
    for sentence in sentences(text):
        size = len(re.findall("[a-z0-9]+", sentence))
        shares = (scorer.score(one, sentence)["rougeL"].precision for one in sentences(source))
        total += size
        near += size * max(shares, default=0.0)
    assert near_share(text, source) == (near / total if total else 0.0)


@given(TEXTS, TEXTS, st.floats(0, 1))
def test_only_what_is_below_a_bound_is_left_out(text, source, least):
    full, quick = copying(text, source), copying(text, source, least_in_step=least)
    assert full.runs == quick.runs
    assert quick.in_step == full.in_step or (quick.in_step == 0.0 and full.in_step < least)
    near, quick_near = near_share(text, source), near_share(text, source, least=least)
    assert quick_near == near or (quick_near == 0.0 and near < least + 1e-12)


@pytest.fixture
def without_package(monkeypatch):
    rouge._stemmer.cache_clear()
    rouge._CONTENT_STEMS.clear()
    monkeypatch.setitem(sys.modules, "rouge_score_rs.tokenizers", None)
    yield
    rouge._stemmer.cache_clear()
    rouge._CONTENT_STEMS.clear()


@pytest.mark.parametrize("env_id", ["mlrl/tldr-v0", "mlrl/arxiv-v0"])
def test_a_missing_package_is_named_when_the_environment_is_made(env_id, without_package):
    with pytest.raises(MissingPackageError, match=r"pip install 'mlrl\[tasks\]'"):
        mlrl_envs.make(env_id, split="sample")
    mlrl_envs.make(env_id, split="sample", reward="paper")

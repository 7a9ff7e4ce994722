import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlrl_envs
from mlrl_envs.rewards.writing.arxiv import LEVELS as ARXIV
from mlrl_envs.rewards.writing.paper import jaccard, paper_levels, transition_score
from mlrl_envs.rewards.writing.tldr import LEVELS as TLDR
from mlrl_envs.rewards.writing.transitions import CATEGORIES

ANY_TEXT = st.text(st.characters(exclude_categories=()))
STYLE = 0.4 * 0.4 + 0.6  # one category, and words shared in full


def _text(tokens, chars, letter="w", shared=0):
    """Return distinct words that hold no transition, so many of them and so many characters."""
    found = [f"zz{n}" for n in range(shared)]
    found += [f"{letter}{n}" for n in range(tokens - shared)]
    return " ".join(found).ljust(chars, "q")


def _total(*args):
    return math.fsum(paper_levels(*args).values())


@pytest.mark.parametrize(
    ("levels", "ratio", "score"),
    [
        (TLDR, 1.0999, None),
        (TLDR, 1.1, 0.0),
        (TLDR, 1.35, 0.5),
        (TLDR, 1.6, 1.0),
        (TLDR, 2.4, 1.0),
        (TLDR, 3.2, 1.0),
        (TLDR, 4.1, 0.5),
        (TLDR, 5.0, 0.0),
        (TLDR, 5.0001, None),
        (ARXIV, 0.7999, None),
        (ARXIV, 0.8, 0.0),
        (ARXIV, 1.05, 0.5),
        (ARXIV, 1.3, 1.0),
        (ARXIV, 1.6, 1.0),
        (ARXIV, 1.8, 0.5),
        (ARXIV, 2.0, 0.0),
        (ARXIV, 2.0001, None),
    ],
)
def test_length_edges(levels, ratio, score):
    assert levels.length(ratio) == (None if score is None else pytest.approx(score, abs=1e-9))


@pytest.mark.parametrize(
    ("levels", "ratio", "score"),
    [
        (TLDR, 1.2999, None),
        (TLDR, 1.3, 0.0),
        (TLDR, 1.65, 0.5),
        (TLDR, 2.0, 1.0),
        (TLDR, 30.0, 1.0),
        (ARXIV, 0.4999, None),
        (ARXIV, 0.5, 0.0),
        (ARXIV, 0.6, 0.5),
        (ARXIV, 0.7, 1.0),
        (ARXIV, 1.3, 1.0),
        (ARXIV, 1.5, 0.5),
        (ARXIV, 1.7, 0.0),
        (ARXIV, 1.7001, None),
    ],
)
def test_vocabulary_edges(levels, ratio, score):
    assert levels.vocabulary(ratio) == (None if score is None else pytest.approx(score, abs=1e-9))


@pytest.mark.parametrize("levels", [TLDR, ARXIV])
@pytest.mark.parametrize("name", ["length", "vocabulary"])
def test_scores_are_continuous_at_inner_edges(levels, name):
    trapezoid = getattr(levels, name)
    for edge in (trapezoid.full_from, trapezoid.full_to):
        if math.isfinite(edge):
            assert trapezoid(edge - 1e-9) == pytest.approx(trapezoid(edge + 1e-9), abs=1e-7)


@pytest.mark.parametrize(
    ("kinds", "score"), [(0, 0.0), (1, 0.4), (2, 0.45), (5, 0.6), (11, 0.9), (12, 0.95)]
)
def test_transition_score(kinds, score):
    assert transition_score(kinds) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "index"),
    [
        (set(), set(), 1.0),
        ({"a"}, set(), 0.0),
        ({"a", "b"}, {"b", "c"}, 1 / 3),
        ({"a"}, {"a"}, 1.0),
    ],
)
def test_jaccard(first, second, index):
    assert jaccard(first, second) == index


@pytest.mark.parametrize(("tokens", "reached"), [(7, False), (8, True), (256, True), (257, False)])
def test_structure_of_tldr_counts_tokens(tokens, reached):
    text = _text(tokens, 0)
    assert ("structure" in paper_levels(text, text, TLDR)) is reached
    assert ("structure" in paper_levels(text, _text(100, 0), TLDR)) is reached


@pytest.mark.parametrize(
    ("tokens", "reached"), [(127, False), (128, True), (256, True), (257, False)]
)
def test_structure_of_arxiv_counts_tokens(tokens, reached):
    text = _text(tokens, 0)
    assert ("structure" in paper_levels(text, text, ARXIV)) is reached


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        # r = 2, q = 2, one word of 31 shared (J = 1/29 > 0.03), no transition.
        (_text(10, 100, shared=1), _text(20, 200, "v", shared=1), 0.5 + 1 + 0.5 + 0.6),
        # The same with nothing shared.
        (_text(10, 100), _text(20, 200, "v"), 0.5 + 1 + 0.5),
        # r = 1.35: half of the length.
        (_text(10, 100), _text(20, 135, "v"), 0.5 + 0.5 + 0.5),
        # r = 1.1 pays nothing and lets through.
        (_text(10, 100), _text(20, 110, "v"), 0.5 + 0.0 + 0.5),
        # r = 1.09 ends the sum.
        (_text(10, 100), _text(20, 109, "v"), 0.5),
        # q = 1.5: two sevenths of the vocabulary.
        (_text(10, 100), _text(15, 200, "v"), 0.5 + 1 + 0.5 * 2 / 7),
        # q = 1.2 ends the sum.
        (_text(10, 100), _text(12, 200, "v"), 0.5 + 1),
        # J = 1 / 59 < 0.03.
        (_text(20, 200, shared=1), _text(40, 400, "v", shared=1), 2 + 0.6 / 59 / 0.03),
        ("", "", 0.0),
        ("a " * 7, "b " * 20, 0.0),
    ],
)
def test_totals_of_tldr(first, second, total):
    assert _total(first, second, TLDR) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        # r = 1.5, q = 1.
        (_text(150, 1000), _text(150, 1500, "v"), 0.5 + 1 + 0.5),
        # J = 50 / 250 = 0.2.
        (
            _text(150, 1000, shared=50),
            _text(150, 1500, "v", shared=50),
            2 + 0.6 * 0.2 / 0.23,
        ),
        # J = 75 / 225 > 0.23.
        (_text(150, 1000, shared=75), _text(150, 1500, "v", shared=75), 2.6),
        # r = 1.8, q = 1.5.
        (_text(160, 1000), _text(240, 1800, "v"), 0.5 + 0.5 + 0.25),
        # r = 0.79 ends the sum.
        (_text(128, 1000), _text(128, 790, "v"), 0.5),
    ],
)
def test_totals_of_arxiv(first, second, total):
    assert _total(first, second, ARXIV) == pytest.approx(total, abs=1e-9)


def test_transitions_of_tldr_are_those_of_the_second_text():
    first, second = _text(10, 100), _text(20, 193, "v")
    assert paper_levels(first, f"{second} indeed", TLDR)["transitions"] == 0.4 * 0.45
    assert paper_levels(f"{first[:-7]} indeed", f"{second}qqqqqqq", TLDR)["transitions"] == 0.0


def test_transitions_of_arxiv_are_those_of_both_texts():
    first, second = _text(150, 1000), _text(150, 1450, "v")
    both = paper_levels(f"{first} hence", f"{second} unless", ARXIV)
    assert both["transitions"] == pytest.approx(0.4 * 0.45)


def test_stop_words_are_no_shared_words():
    first = "the of and to in it " + _text(4, 60)
    second = "the of and to in it " + _text(20, 140, "v")
    assert paper_levels(first, second, TLDR)["shared words"] == 0.0


def test_all_categories_reach_2_98():
    links = " ".join(phrases[0] for phrases in CATEGORIES.values())
    first = _text(30, 0, shared=9)
    second = f"{_text(50, 0, 'v', shared=9)} {links}"
    assert _total(first, second, TLDR) == pytest.approx(2.98)


@settings(max_examples=60)
@given(ANY_TEXT, ANY_TEXT)
def test_any_texts_stay_in_range(first, second):
    for levels in (TLDR, ARXIV):
        assert 0.0 <= _total(first, second, levels) <= 3.0


@pytest.mark.parametrize("env_id", ["mlrl/tldr-v1", "mlrl/arxiv-v1"])
def test_agents_share_the_sum_of_the_levels(env_id):
    env = mlrl_envs.make(env_id, split="sample", reward="paper")
    env.reset(seed=0)
    rng = random.Random(0)
    texts = [" ".join(rng.choices("abcdefgh", k=count)) for count in (130, 180)]
    _, rewards, *_, infos = env.step(dict(zip(env.possible_agents, texts, strict=True)))
    assert env.reward_range == (0.0, 3.0)
    for agent in env.possible_agents:
        assert rewards[agent] == pytest.approx(math.fsum(infos[agent]["components"].values()))
        assert rewards[agent] >= 0.5

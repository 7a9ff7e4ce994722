import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.prose.negation import negations, plain_speech
from mlrl_envs.testing import JUNK_TEXTS

FOUR = "The goat is not mine. I don\u2019t own one. He can't swim. She was late."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", (0, 0)),
        ("Nothing is known. Now nobody knows.", (0, 2)),
        ("It is not so. It isn't, and it cannot be.", (3, 2)),
        ("It is NOT not so", (2, 1)),
        (FOUR, (3, 4)),
    ],
)
def test_negations_are_counted_by_the_sentence(text, found):
    assert negations(text) == found


@pytest.mark.parametrize(
    ("text", "source", "factor"),
    [
        ("He came.", None, 1.0),
        ("He did not come.", None, 1 - 0.01 / 3),
        ("It is not. It was not. It can not. It has not.", None, (1 - 0.4 / 0.6) * 0.99),
        (
            "It is not. It was not. It can not. It has not.",
            "It is so.",
            (1 - 0.5 / 0.6) * 0.99,
        ),  # two are free
        ("It is not. It was not. It can not. It has not.", "It is not so.", 1.0),
        (FOUR, "It is so. It is not.", 1 - 0.01 * 0.25),  # three of four beside one of two
    ],
)
def test_by_hand(text, source, factor):
    assert plain_speech(text, source) == pytest.approx(factor)


def test_one_more_never_ties():
    texts = ["He came. He saw it. He was" + " not" * count + " there." for count in range(6)]
    factors = [plain_speech(text) for text in texts]
    assert all(more < less for less, more in pairwise(factors) if less)


@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_is_survived(text):
    assert 0.0 <= plain_speech(text, text) <= 1.0


@given(st.text(st.characters(exclude_categories=())), st.text() | st.none())
def test_any_text_gets_a_share(text, source):
    assert 0.0 <= plain_speech(text, source) <= 1.0


@given(
    st.lists(
        st.sampled_from(["not", "NOT", "cannot", "can't", "n\u2019t", "_not", "n't_", "knot", "."])
        | st.text(st.characters(exclude_categories=()), max_size=3)
    ).map(lambda parts: " ".join(parts) + "".join(parts))
)
def test_negations_are_those_of_one_pattern(text):
    pattern = r"\b(?:not|cannot)\b|n['\u2019]t\b"
    assert negations(text)[0] == len(re.findall(pattern, text, re.IGNORECASE))

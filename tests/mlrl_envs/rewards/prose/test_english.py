import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.prose import english
from mlrl_envs.rewards.prose.english import (
    CONTENT,
    FUNCTION_WORDS,
    SENTENCE_END,
    order_breaches,
    outline_of,
)


def breaches(*sentences):
    """Return what `order_breaches` finds in lists of words."""
    return order_breaches(outline_of([word for one in sentences for word in (*one, SENTENCE_END)]))


@pytest.mark.parametrize(
    "sentence",
    [
        "the old man of the sea",
        "what are you waiting for",
        "she gave him the key",
        "this is a story to be told",
        "he would never have been there",
        "an hour ago an old owl saw a one eyed cat in a european town",
        "because of the rain and in spite of it",
        "it was her",
        "out of the blue",
        "so that he could hear her",
    ],
)
def test_grammar_is_let_through(sentence):
    assert breaches(sentence.split())[0] == 0


@pytest.mark.parametrize(
    "sentence",
    [
        "the of man",
        "a the man",
        "his is gone",
        "he went to was",
        "would the man",
        "they a house",
        "and or not",
        "is was here",
        "him had seen",
        "has would go",
        "a old man",
        "an river",
        "he came with the",
        "from she came",
    ],
)
def test_word_salad_is_noticed(sentence):
    assert breaches(sentence.split())[0] >= 1


def test_nothing_is_checked_where_nothing_can_be():
    assert breaches([], ["fox", "river"]) == (0, 0)


def test_function_words_are_function_words():
    assert {"the", "of", "and", "was", "them", "would"} <= FUNCTION_WORDS
    assert not {"fox", "river", "city", "said"} & FUNCTION_WORDS


def is_breach(word, following):
    if not following:
        return word in english._NEVER_LAST
    if word == "a" and following[0] in "aeio" and not following.startswith(("one", "once", "eu")):
        return True
    if word == "an" and following[0] not in "aeiouh" and not following[0].isdigit():
        return True
    return any(word in before and following in after for before, after in english._RULES)


@given(
    st.lists(
        st.lists(
            st.sampled_from(sorted(FUNCTION_WORDS))
            | st.sampled_from(
                ["a", "an", "euro", "hour", "apple", "uncle", "fox", "7", "\u00e9t\u00e9"]
            )
        )
    )
)
def test_breaches_are_those_of_the_rules_one_by_one(sentences):
    ruled = frozenset().union(*(before for before, _ in english._RULES))
    verdicts = [
        is_breach(word, following)
        for sentence in sentences
        for word, following in zip(sentence, [*sentence[1:], ""], strict=False)
        if word in ruled
    ]
    assert breaches(*sentences) == (sum(verdicts), len(verdicts))


def test_function_words_differ_in_outlines_and_content_words_only_by_their_articles():
    assert len(set(outline_of(FUNCTION_WORDS))) == len(FUNCTION_WORDS)
    fox, cat, apple, owl, hour, euro = outline_of(["fox", "cat", "apple", "owl", "hour", "euro"])
    assert (fox, apple, hour) == (cat, owl, euro)
    assert {fox, apple, hour} == set(CONTENT)

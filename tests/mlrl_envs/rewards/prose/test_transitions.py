import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.prose import transitions
from mlrl_envs.rewards.prose.transitions import (
    CATEGORIES,
    STOP_WORDS,
    find_transitions,
    match_transitions,
)


def test_there_are_twelve_categories():
    assert set(CATEGORIES) == {
        "elaboration", "example", "explanation", "cause and effect", "contrast", "sequence",
        "emphasis", "summary", "comparison", "concession", "condition", "time",
    }  # fmt: skip
    assert all(phrase == phrase.strip().lower() for p in CATEGORIES.values() for phrase in p)


def test_stop_words_are_common_words():
    assert len(STOP_WORDS) == 106
    assert {"the", "of", "good", "you"} <= STOP_WORDS


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("zzz", set()),
        ("basket", {"time"}),  # as
        ("Hence", {"cause and effect"}),
        ("thenceforth", {"cause and effect", "sequence"}),
        ("in the end", {"sequence", "summary"}),
        ("HOWEVER", {"contrast", "concession"}),
    ],
)
def test_published_matching_finds_phrases_inside_words(text, kinds):
    assert match_transitions(text) == kinds


@pytest.mark.parametrize(
    ("text", "kinds", "taken"),
    [
        ("basket", set(), 0),
        ("thenceforth", set(), 0),
        ("as had were so first", set(), 0),
        ("however", {"contrast", "concession"}, 1),
        ("in the end", {"sequence", "summary"}, 3),
        ("in the", set(), 0),
        ("later on it rained", {"sequence"}, 2),
        ("he came later", {"sequence", "time"}, 1),
        ("for example for", {"example"}, 2),
        ("", set(), 0),
    ],
)
def test_grounded_matching_wants_whole_words(text, kinds, taken):
    assert find_transitions(text.split()) == (kinds, taken)


LINK_WORDS = sorted(
    {word for phrases in CATEGORIES.values() for p in phrases for word in p.split()}
)


@given(st.lists(st.sampled_from([*LINK_WORDS, "fox"]), max_size=40))
def test_the_longest_phrase_at_each_word_is_found(words):
    links = transitions._LINKS
    found, taken = set(), 0
    for place in range(len(words)):
        sizes = [n for n in range(9, 0, -1) if " ".join(words[place:][:n]) in links]
        if sizes:
            phrase = " ".join(words[place:][: sizes[0]])
            found, taken = found | links[phrase], taken + len(phrase.split())
    assert find_transitions(words) == (found, taken)
    opens = any(" ".join(words[:size]) in links for size in range(1, 9))
    assert transitions.opens_with_transition(words) == opens

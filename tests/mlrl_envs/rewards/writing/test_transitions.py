import pytest

from mlrl_envs.rewards.writing.transitions import CATEGORIES, STOP_WORDS, match_transitions


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

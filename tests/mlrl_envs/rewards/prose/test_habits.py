import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.parsing.text import words
from mlrl_envs.rewards.prose.habits import habit_score
from mlrl_envs.rewards.prose.transitions import find_transitions
from mlrl_envs.testing import JUNK_TEXTS

PROSE = (
    "The fox crossed the frozen river at night with a letter for the old miller. He had not heard "
    "from his daughter since autumn. However, the letter was wet and nobody could read the name on "
    "it, so the fox waited by the stove until the ink had dried."
)


def _manner(text):
    return habit_score(text, find_transitions(words(text))[1])


def test_prose_loses_next_to_nothing():
    assert _manner(PROSE) > 0.98


BAD = {
    "one pattern": "The dog of the house is in the yard. The bone of the cat is in the tree. "
    "The key of the room is in the lake. The ear of the fox is in the book.",
    "one sentence over and over": "The fox crossed the frozen river at night. " * 4,
    "one word over and over": PROSE + " fox" * 20,
    "transitions everywhere": "however the moreover fox therefore crossed thus the indeed river",
    "capitals": PROSE.upper(),
    "white space": PROSE + " " * 2 * len(PROSE),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_manners_cost_more_than_half(name):
    assert _manner(BAD[name]) < 0.5


MILD = {
    "a transition at the head of each sentence": "However, the fox crossed the frozen river. "
    "Moreover, the old miller was waiting by the stove in his house. Therefore, his only daughter "
    "wrote him a long letter. In short, nobody on that side of the river could read her name.",
    "a list": "\n".join(f"- {line}." for line in PROSE.split(". ")),
    "no beginning": PROSE.split(". ", 1)[1],
    "a link to nothing": "However, " + PROSE,
}


@pytest.mark.parametrize("name", MILD)
def test_mild_ones_cost_something(name):
    assert 0.2 < _manner(MILD[name]) < 0.95


def test_a_subordinate_clause_may_come_first():
    assert _manner("While it snowed, " + PROSE) > 0.97


@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_is_survived(text):
    assert 0.0 <= _manner(text) <= 1.0


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_gets_a_share(text):
    assert 0.0 <= _manner(text) <= 1.0

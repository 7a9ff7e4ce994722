import pytest

from mlrl_envs.rewards.prose.words import words_of

# Ends of the ranges that Unicode calls ignorable by default, with the fillers of Hangul.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180f\u200b\u200f\u202a\u202e\u2060\u206f"
    "\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0\ufff8\U000e0000\U000e0fff"
)


@pytest.mark.parametrize("character", INVISIBLE, ids=lambda character: f"{ord(character):04x}")
def test_an_invisible_character_does_not_divide_a_word(character):
    assert words_of(f"The do{character}g") == ("the", "dog")

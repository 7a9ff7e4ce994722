import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlrl_envs.parsing.text import words
from mlrl_envs.rewards.prose.document import distinct_runs, parse_document, tokens_of, words_of
from mlrl_envs.rewards.prose.english import SENTENCE_END, outline_of

TEXTS = st.text(st.characters(exclude_categories=())) | st.text("aA b.!?\"'\u2019\n\u03a3\u0130_")


@given(TEXTS)
@example("O\u03a3.A")  # the small letter hangs on what follows
def test_words_are_those_of_the_whole_text(text):
    assert words_of(text) == words(text)


@given(TEXTS)
def test_a_reading_goes_sentence_by_sentence(text):
    reading = parse_document(text)
    found = [words(sentence) for sentence, _ in reading.sentences]
    assert "".join(sentence for sentence, _ in reading.sentences) == text
    assert [size for _, size in reading.sentences] == list(map(len, found))
    assert reading.words == [word for one in found for word in one]
    marked = [word for one in found for word in (*one, SENTENCE_END)]
    assert reading.outline == outline_of(marked)


@pytest.mark.parametrize(("text", "sizes"), [("", []), ('Hm... "No." He left', [1, 1, 2])])
def test_sentences_end_with_their_marks(text, sizes):
    assert [size for _, size in parse_document(text).sentences] == sizes


def test_runs_are_counted_once():
    assert distinct_runs("the fox saw the fox", 2) == {
        ("the", "fox"),
        ("fox", "saw"),
        ("saw", "the"),
    }
    assert distinct_runs("the fox", 3) == frozenset()


def test_tokens_stand_between_white_space():
    assert tokens_of(" The\u00a0fox,\tthen\n") == ["The", "fox,", "then"]

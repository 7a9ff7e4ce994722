import math

from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.tasks import Document
from mlrl_envs.tools.search import Index

DOCUMENTS = (
    Document("a", "Apples", "Apples grow on trees, apples are red."),
    Document("b", "Trees", "Trees grow in woods."),
    Document("c", "Cats", "Cats sleep in trees."),
    Document("c2", "Cats", "Cats sleep in trees."),
)
INDEX = Index(DOCUMENTS)


def found(query, count=3):
    return [document.id for document in INDEX.search(query, count)]


def test_the_best_comes_first_and_ties_keep_the_order_of_the_corpus():
    assert found("red apples") == ["a"]
    assert found("cats") == ["c", "c2"]
    assert found("trees woods")[0] == "b"


def test_what_shares_no_word_is_not_found():
    assert found("zebra") == found("") == found("!?") == []


def test_the_score_is_the_published_one():
    # BM25 of "apples" in the first document, by hand: 3 of 8 words; 1 of 4 documents has it.
    lengths = [8, 5, 5, 5]
    norm = 1.5 * (1 - 0.75 + 0.75 * 8 / (sum(lengths) / 4))
    by_hand = math.log(1 + (4 - 1 + 0.5) / (1 + 0.5)) * 3 * 2.5 / (3 + norm)
    assert math.isclose(INDEX._score(["apples"], 0), by_hand, abs_tol=1e-12)


def test_an_empty_corpus_finds_nothing():
    assert Index(()).search("x") == []


@given(st.text())
def test_any_query_is_answered_the_same_again(query):
    assert INDEX.search(query) == Index(DOCUMENTS).search(query)

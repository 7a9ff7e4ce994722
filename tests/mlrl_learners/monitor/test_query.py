import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_learners.monitor.query import Query

WORDS = st.sampled_from([*Query.__dataclass_fields__, "other"])


@given(st.dictionaries(WORDS, st.text(max_size=8) | st.sampled_from(["yes", "best", "0.5", "3"])))
def test_any_words_are_a_query_whose_words_are_the_same_query(words):
    query = Query.parse(words)
    assert Query.parse(query.words()) == query


@pytest.mark.parametrize(
    "words",
    [{"low": "nan"}, {"high": "inf"}, {"first": "x"}, {"last": "1e99"}, {"solved": "maybe"},
     {"order": "up"}, {"source": "/etc"}],
)  # fmt: skip
def test_what_makes_no_sense_is_as_if_it_had_not_been_asked(words):
    assert Query.parse(words) == Query()


def test_order_and_source_filter_nothing_out():
    assert Query(source="evaluation", order="best").is_plain
    assert not Query(low=0.0).is_plain

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.sequences import (
    count_grams,
    count_known,
    count_shared,
    lay_out,
    longest_common,
    ngrams,
)

WORDS = st.lists(st.sampled_from("abcde"), max_size=40)


def slow_longest_common(first, second):
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            above = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else above
    return table[-1][-1]


@given(st.lists(WORDS, max_size=6), WORDS)
def test_the_longest_common_subsequence_is_that_of_the_table(lines, words):
    expected = max((slow_longest_common(line, words) for line in lines), default=0)
    assert longest_common(lay_out(lines), words) == expected


@given(WORDS, WORDS, st.integers(1, 4))
def test_grams_are_counted_as_one_by_one(words, others, size):
    grams, known = ngrams(words, size), ngrams(others, size)
    clipped = (Counter(grams) & Counter(known)).total()
    assert count_shared(count_grams(grams), count_grams(known)) == clipped
    found = sum(gram in set(known) for gram in grams)
    assert count_known(count_grams(grams), count_grams(known)) == found

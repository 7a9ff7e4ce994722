from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.prose.sequences import (
    count_grams,
    count_shared,
    lay_out,
    letters_of,
    longest_common,
    ngrams,
    runs_of,
    spell,
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


@given(WORDS, WORDS, st.integers(1, 4))
def test_runs_of_letters_share_what_ngrams_share(words, others, size):
    letters = letters_of(others)
    runs, known = (runs_of(spell(row, letters), size) for row in (words, others))
    clipped = (Counter(ngrams(words, size)) & Counter(ngrams(others, size))).total()
    assert count_shared(count_grams(runs), count_grams(known)) == clipped
    assert len(known) == len(ngrams(others, size))


def test_a_word_without_a_letter_is_a_gap():
    words = ["a", "fox", "and", "a", "cat", "a", "fox"]
    spelled = spell(words, letters_of(["a", "fox"]))
    assert len(spelled) == len(words)
    assert runs_of(spelled, 2) == [spelled[:2]] * 2
    assert runs_of(spelled, 3) == []

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.parsing.combining import MAX_MARKS, limit_combining
from mlrl_envs.parsing.text import extract_code, parse_code

MARKS = "\u0301\u0327"  # of two classes, in the order that normalisation must change
# Of combining class 0, but normalised to marks.
DECOMPOSED = "\u0f73\uff9e"
SPEED = 1.0  # seconds for what took five


@pytest.mark.parametrize("marks", [MARKS, DECOMPOSED, "\u0301\u0f73"])
def test_a_run_keeps_its_first_marks(marks):
    kept = (marks * MAX_MARKS)[:MAX_MARKS]
    assert limit_combining(f"a{marks * 40}b{marks}") == f"a{kept}b{marks}"


@pytest.mark.parametrize(
    "text",
    ["", "plain", "e\u0301 " * 40, "\u1ec7" * 100, "\u4e2d" * 100, "a" + MARKS * 15, "क्षि" * 50],
)
def test_text_with_short_runs_stays_as_it_is(text):
    assert limit_combining(text) == text


@given(st.text(st.sampled_from("a\u00e9\u4e2d\u0301\u0327\u0f73\uff9f\ud800"), max_size=200))
def test_no_long_run_is_left_and_nothing_else_is_lost(text):
    limited = limit_combining(text)
    decomposed = "".join("m" if _is_mark(c) else " " for c in limited)
    assert max(map(len, decomposed.split()), default=0) <= MAX_MARKS
    assert [c for c in limited if not _is_mark(c)] == [c for c in text if not _is_mark(c)]
    assert limit_combining(limited) == limited


def _is_mark(character):
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


def test_every_character_that_normalises_to_marks_is_one():
    marks = [chr(code) for code in range(0x20000) if _is_mark(chr(code))]
    assert all(limit_combining(mark * 40) == mark * MAX_MARKS for mark in marks)


def test_a_long_run_takes_linear_time():
    start = time.process_time()
    unicodedata.normalize("NFKC", limit_combining("a" + MARKS * 500_000))
    assert time.process_time() - start < SPEED


def test_an_identifier_with_a_long_run_of_marks_does_not_parse():
    for marks in (MARKS, DECOMPOSED):
        source = f"a{marks * 12_000} = 1"
        code = parse_code(source)
        assert (code.tree, code.error) == (None, "more than 30 combining marks in a row")
        assert extract_code(f"```python\n{source}\n```", "f").tree is None
    assert parse_code("a" + "\u0301" * MAX_MARKS + " = 1").tree is not None

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.rewards.math.equations import equations, is_backed, shows_steps

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("So 12*3 = 36 and 5 + 5 = 11.", [("12*3 = 36", True), ("5 + 5 = 11", False)]),
        ("1,000 + 5 = 1005", [("1,000 + 5 = 1005", True)]),
        ("100 / 3 = 33.33", [("100 / 3 = 33.33", True)]),
        ("2 + 3 * 4 - 8 / 2 = 10", [("2 + 3 * 4 - 8 / 2 = 10", True)]),
        ("48 x 2 = 96", [("48 x 2 = 96", True)]),
        ("48 \u00d7 2 = 95", [("48 \u00d7 2 = 95", False)]),
        ("$5 + $6 = $11", [("$5 + $6 = $11", True)]),
        (
            "-306 - 18 = -324\n-324 / 9 = -36",
            [("-306 - 18 = -324", True), ("-324 / 9 = -36", True)],
        ),
        ("(2 + 1) * 3 + 4 = 13", [("(2 + 1) * 3 + 4 = 13", True)]),
        ("3 * (5 * 24 + 2 * 40) = 600", [("3 * (5 * 24 + 2 * 40) = 600", True)]),
        ("3 / 8 = 3/8", [("3 / 8 = 3/8", True)]),
        ("1 + 1 + 3 = 5 = 5", [("1 + 1 + 3 = 5", True)]),
    ],
)
def test_calculations_are_read(text, read):
    assert [(each.text, each.is_true) for each in equations(text)] == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "= = =",
        "x(2 + 1) * 3 + 4 = 13",
        "x - 5 + 3 = 2",
        "3 + 4 = 2 + 5",
        "2x + 3 = 9",
        "5 / 0 = 3",
        "7 = 7",
        "5 + 5 = 10%",
        f"{'9' * 50} + 1 = 2",
    ],
)
def test_what_is_no_plain_calculation_is_passed_over(text):
    assert equations(text) == []


QUESTION = "Ann has 48 clips and gets half as many again. How many does she have?"


@pytest.mark.parametrize(
    ("text", "backed"),
    [
        ("48 / 2 = 24\n48 + 24 = 72", True),
        ("48 * 1.5 = 72", True),
        ("24 + 48 = 72", True),
        ("half of 48 is 24, and with the 48 she had that makes 72", True),
        ("48 divided by 2 is 24, and 48 plus 24 makes 72", True),
        ("(48 + 48) - 48 / 2 = 72", True),
        ("| first | 48 | 24 |\n| all | 72 |", True),
        ("48 / 2 + 48 = 24 + 48 = 72", True),
        ("48 / 2 = 96/4\n96/4 + 192/4 = 288/4 = 72", True),
        ("(48 * 3) / 2 = 144 / 2 = 72", True),
        ("5 + 2 = 3 + 4 = 72", False),
        ("72", False),
        ("1 + 1 = 2, 3 * 5 = 15, 9 - 2 = 7: 72", False),
        ("72 + 0 = 72", False),
        ("72 * 1 = 72", False),
        ("70 + 2 = 72", False),
        ("36 * 2 = 72", False),
        ("48 + 20 = 72", False),
        ("48 + 20 = 68", False),
        ("First, then, therefore, step by step: 72", False),
    ],
)
def test_working_must_lead_from_the_question_to_the_answer(text, backed):
    assert is_backed(text, Fraction(72), QUESTION) is backed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Answer: 4", False),
        ("The answer is 4.", False),
        ("2 + 2 = 4", True),
        ("Step 1: add. Step 2: done.", True),
        ("First I add, therefore 4.", True),
        ("sofa, theologian", False),
    ],
)
def test_steps_are_seen_as_published(text, shown):
    assert shows_steps(text) is shown


@given(ANY_TEXT)
def test_any_text_is_read(text):
    equations(text)
    is_backed(text, Fraction(1), text)
    shows_steps(text)


def test_megabyte_is_read():
    for piece in ("1+", "=", "1+1=", "1", "1 "):
        equations(piece * (10**6 // len(piece)) + "=")

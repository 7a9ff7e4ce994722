from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlrl_envs.parsing.numbers import (
    NumericAnswer,
    find_answer,
    format_number,
    read_number,
    same_answer,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ALPHABET = st.sampled_from(
    [
        "Answer: ",
        "\\boxed{",
        "}",
        "#### ",
        "1",
        "2,000",
        "3/4",
        "-",
        "%",
        "$",
        "=",
        " or ",
        "\n",
        " ",
    ]
)

FOUND = {
    "Answer: 42": 42,
    "answer: 42.": 42,
    "**Answer:** **42**": 42,
    "Answer:\n42": 42,
    "The answer is 42.": 42,
    "The final answer is: $\\boxed{42}$.": 42,
    "The answer to the problem is 42": 42,
    '{"answer": 42}': 42,
    "<answer>42</answer> 7": 42,
    "First 6 * 7 = 42.\n#### 42": 42,
    "#### 1{,}000": 1000,
    "Answer: 1,000": 1000,
    "Answer: 1,234,567.5": Fraction("1234567.5"),
    "Answer: $1,000.50": Fraction("1000.5"),
    "Answer: 18$": 18,
    "Answer: \u20ac18": 18,
    "Answer: 1/2": Fraction(1, 2),
    "Answer: 3 1/2": Fraction(7, 2),
    "Answer: -3/4 cup": Fraction(-3, 4),
    "\\boxed{\\frac{1}{2}}": Fraction(1, 2),
    "\\boxed{\\dfrac{ -7 }{ 2 }}": Fraction(-7, 2),
    "\\boxed{\\text{about } \\boxed{12} \\text{ km}}": 12,
    "\\boxed{12": 12,
    "Answer: -5": -5,
    "Answer: \u22125": -5,
    "Answer: -$5": -5,
    "Answer: $-5": -5,
    "Answer: +5": 5,
    "Answer: x = -5": -5,
    "Answer: 25%": 25,
    "Answer: 25 percent": 25,
    "Answer: 25\\%": 25,
    "Answer: .5": Fraction(1, 2),
    "Answer: 1e3": 1000,
    "Answer: 1.5e-3": Fraction("0.0015"),
    "Answer: 2 x 10^3": 2000,
    "Answer: 2 \\times 10^{3}": 2000,
    "Answer: 3 + 4 = 7": 7,
    "Answer: 42 = 6 * 7": 42,
    "Answer: 42. Check: 6 * 8 = 48": 42,
    "Answer: 12 apples (3 per box)": 12,
    "Answer: each of the 4 children gets 6 apples": 6,
    "Answer: 1\nNo, I was wrong.\nAnswer: 2": 2,
    "We add 40 and 2.\nSo there are 42 clips.": 42,
    "42": 42,
    "Answer:\r\n42": 42,
    "**Answer:**\r\n\r\n**42**": 42,
    "<answer>\r\n42\r\n</answer>": 42,
    "**Answer:**\n\n$$\n42\n$$": 42,
    "The answer is:\n\\[\n42\n\\]": 42,
    "Answer:\n```\n42\n```": 42,
    "Answer:\n```text\n42\n```": 42,
    "Answer:\n- 42": 42,
    "6 * 7 = 42\nThis answer is reasonable.": 42,
    "<answer>1284. This answer is right.</answer>": 1284,
    "Answer: - 5": -5,
    "Answer: \u2212 5": -5,
    "So x = - 5": -5,
    "The answer is **- 5**.": -5,
    "Answer: 7 - 5 = 2": 2,
    "#### Step 1. Add\n40 + 2 = 42\n#### Answer\n42": 42,
    "#### **42**": 42,
    "#### $\\boxed{42}$": 42,
    "\\boxed{-\\frac{3}{4}}": Fraction(-3, 4),
    "Answer: $-\\dfrac{30}{2}$": -15,
    "Answer: $-\\frac{-30}{2}$": 15,
    "\\boxed{- 15}": -15,
    "Answer: \u201115": -15,
    "Answer: \u201015": -15,
    "Answer: minus 15": -15,
    "The answer is negative 15.": -15,
    "Answer: 20 minus 5 = 15": 15,
    "Answer: 1 250": 1250,
    "Answer: 1\u202f250\u202f000": 1250000,
    "Answer: 12'500.5": Fraction("12500.5"),
    "\\boxed{1\\;250}": 1250,
    "\\boxed{1\\ 250}": 1250,
    "Answer: 1 250/500": Fraction(3, 2),
    "Answer: 42 (6 * 7)": 42,
    "Answer: 42 since 6 * 7 is 42": 42,
    "The answer is 42, which is 6 \u00d7 7.": 42,
    "The answer to 6 * 7 is 42.": 42,
    "1. 6 * 7 = 42\n2. There are 42 clips.": 42,
    "1) 40 + 2 = 42\n**2)** So there are 42 clips.": 42,
    "They need\n42. That is all, in 6 rows": 42,
}
NOT_FOUND = [
    "",
    "no number",
    "Answer: <number>",
    "Answer: unknown\n5 is a number",
    "Answer: 5 or 6",
    "Answer: either 5 apples, or maybe 6 apples",
    "Answer: 5, 6, 7",
    "Answer: 5 and 6",
    "1 2 3 4 5",
    "It may be 1, 2, 3 or 42.",
    "Answer: 6 * 7",
    "Answer: 1/0",
    "Answer: 1e999999999",
    "Answer: " + "9" * 5000,
    "\n".join(f"Answer: {n}" for n in range(10)),
    "\u0664\u0662",
    "\ud800",
]


@pytest.mark.parametrize("text", FOUND)
def test_answer_is_read(text):
    assert find_answer(text).value == FOUND[text]


@pytest.mark.parametrize("text", NOT_FOUND, ids=lambda text: repr(text[:30]))
def test_no_number_or_many_are_no_answer(text):
    assert find_answer(text) is None


def test_mark_is_told_from_a_last_number():
    assert find_answer("Answer: 5").marked
    assert not find_answer("It is 5").marked


@pytest.mark.parametrize(
    ("answer", "wanted", "same"),
    [
        (NumericAnswer(Fraction(5)), 5, True),
        (NumericAnswer(Fraction(5)), -5, False),
        (NumericAnswer(Fraction(1, 3)), Fraction("0.3333333"), True),
        (NumericAnswer(Fraction(1, 3)), Fraction("0.333"), False),
        (NumericAnswer(Fraction(25), percent=True), 25, True),
        (NumericAnswer(Fraction(25), percent=True), Fraction(1, 4), True),
        (NumericAnswer(Fraction(25)), Fraction(1, 4), False),
        (None, 0, False),
    ],
)
def test_answers_are_compared_by_value(answer, wanted, same):
    assert same_answer(answer, Fraction(wanted)) is same


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1000), "1000"),
        (Fraction(-5, 2), "-2.5"),
        (Fraction(1, 100), "0.01"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-17, 6), "-17/6"),
    ],
)
def test_numbers_are_written_exactly(value, text):
    assert format_number(value) == text


@given(st.fractions(max_denominator=10**6))
def test_written_number_is_read_back(value):
    assert read_number(format_number(value)) == value
    assert find_answer(f"So it is.\nAnswer: {format_number(value)}").value == value


@settings(max_examples=300)
@given(st.one_of(ANY_TEXT, st.lists(ALPHABET, max_size=20).map("".join)))
@example("\\boxed{" * 50)
@example("Answer: 1/2/3/4 %%%")
def test_any_text_gives_an_answer_or_none(text):
    answer = find_answer(text)
    assert answer is None or isinstance(answer.value, Fraction)
    assert read_number(text) is None or isinstance(read_number(text), Fraction)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    ["(", "1", "1,", "1/2 ", "#### ", "\\boxed{", "answer to ", "\\frac{", "$-", "answer  "],
)
def test_megabyte_is_read_quickly(piece):
    find_answer(piece * (10**6 // len(piece)))


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        "1" + " " * 19_000 + "y 2",
        "1" + "*" * 19_000 + "y 2",
        "1" + "\n" * 19_000 + "y 2",
        "1" + "(" * 19_000 + "y 2",
        ("Answer: 1" + " " * 380 + "y 2 ") * 48,
        ("Answer: 1" + "*" * 380 + "y 2 ") * 48,
        ("Answer:" + "\n$ " * 130 + "y ") * 48,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_runs_of_spaces_and_marks_are_read_in_linear_time(text):
    find_answer(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 1, x = 7", None),
        ("x = 7, x = 1", None),
        ("Answer: x = 1, x = 7", None),
        ("Answer: x = 7, x = 1", None),
        ("x = 14 / 2 = 7", 7),
        ("x = 7\nCheck: 3 * 7 + 4 = 25", 7),
        ("So x = 7. To verify: 3 * 7 = 21.", 7),
        ("Check: 21 / 3 = 7", 7),
    ],
)
def test_one_unknown_has_one_value_and_a_check_is_no_answer(text, value):
    answer = find_answer(text)
    assert (answer and answer.value) == value

"""Answers compared as numbers and names: `mlrl_envs.tools.answers`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.tasks import ToolEvidence, ToolTask
from mlrl_envs.tools.answers import is_right

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def make_task(answer, *rivals):
    evidence = ToolEvidence("solver", "calculator", "{}", ("30", "2.5"), answer)
    briefs = (("researcher", "It is item K-311."), ("solver", "One weighs 2.5 kg."))
    return ToolTask("t", "How much?", briefs, (evidence,), answer, rivals=rivals)


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        ("75", "75", True),
        ("75.0 kg", "75", True),
        ("The cargo weighs 75 kg.", "75", True),
        ("1,250.5", "1250.5", True),
        ("$1250.5", "1250.5", True),
        ("1.2505e3", "1250.5", True),
        ("1 250.5 kg", "1250.5", True),
        ("1'250.5", "1250.5", True),
        ("**1250.50**", "1250.5", True),
        ("\\boxed{1250.5}", "1250.5", True),
        ("30 * 2.5 = 75", "75", True),
        ("75 kg (30 * 2.5)", "75", True),
        ("75 kg for 30 at 2.5 kg", "75", True),
        ("The 30 of K-311 weigh 75 kg, 2.5 kg each.", "75", True),
        ("74, 75, 76", "75", False),
        ("74 kg and 75 kg", "75", False),
        ("30, 74, 75", "75", False),
        ("75 | 74", "75", False),
        ("-75", "75", False),
        ("175", "75", False),
        ("75 or 74", "75", False),
        ("", "75", False),
        (None, "75", False),
        ("7" * 300, "75", False),
        ("ilse marn.", "Ilse Marn", True),
        ("The master was Ilse Marn of Molen.", "Ilse Marn", True),
        ("ILSE  MARN", "Ilse Marn", True),
        ("_Ilse\nMarn_", "Ilse Marn", True),
        ("Ilse Marn, who came after Emil Berg", "Ilse Marn", True),
        ("Emil Berg, then Ilse Marn", "Ilse Marn", False),
        ("Ilse Marn and Emil Berg", "Ilse Marn", False),
        ("Ilse Marn / Emil Berg", "Ilse Marn", False),
        ("either Ilse Marn", "Ilse Marn", False),
        ("Ilse Marnen", "Ilse Marn", False),
        ("Ilse Marn, Emil Berg", "Ilse Marn", False),
        ("Ilse Marn or Otto Kern", "Ilse Marn", False),
        ("Marn", "Ilse Marn", False),
        ("\ud800", "Ilse Marn", False),
    ],
)
def test_right_answers(answer, wanted, right):
    assert is_right(answer, make_task(wanted, "Emil Berg")) is right


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_is_compared(text, other):
    for task in (make_task("75"), make_task(text or "x", other), make_task("Ilse Marn")):
        for answer in (text, f"{text}75{other}", f"{text} Ilse Marn {other}"):
            assert is_right(answer, task) in (True, False)


@given(st.integers(1000, 10**9), st.integers(0, 99))  # above the numbers of the task
def test_a_number_may_be_written_in_many_ways(whole, cents):
    value = f"{whole}.{cents:02d}"
    task = make_task(value.rstrip("0").rstrip("."))
    for text in (
        value,
        f"${whole:,}.{cents:02d}",
        f"about {value} kg",
        f"It is {value}.",
        f"{value}e0",
    ):
        assert is_right(text, task)
    assert not is_right(f"{value}, {whole + 1}", task)
    assert not is_right(str(whole + 1), task)

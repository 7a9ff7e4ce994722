"""Answers of generated tool tasks, computed again from what the task tells.

Each kind has a solver of its own here. It reads the question, the briefs, the documents and the
files, as a person does, and shares no code with the generators.
"""

import csv
import io
import re
from datetime import date
from fractions import Fraction
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlrl_envs.datasets.tools import KINDS, LEVELS, make_task


def numbers(text):
    return [Fraction(found) for found in re.findall(r"\d+(?:\.\d+)?", text)]


def codes(text):
    return re.findall(r"[A-Z]+-\d+", text)


class Facts:
    """What a task tells: the two briefs, documents by code or name, and tables by file."""

    def __init__(self, task, files=None):
        briefs = dict(task.briefs)
        self.question, self.told, self.known = task.question, briefs["researcher"], briefs["solver"]
        self.documents = {d.title.split()[-1]: d.text for d in task.documents}
        self.files = dict(task.files if files is None else files)

    def about(self, place=0):
        """Return the document of a code in the researcher's brief, without the code itself."""
        code = codes(self.told)[place]
        return self.documents[code].replace(code, "")

    def rows(self, name):
        return list(csv.DictReader(io.StringIO(self.files[name])))


def cargo(facts):
    crates = re.findall(r"(\d+) crates of (\w+)", facts.about())
    weights = dict(re.findall(r"a crate of (\w+) weighs ([\d.]+) kg", facts.known))
    assert len(crates) == len(weights)
    return sum(Fraction(count) * Fraction(weights[good]) for count, good in crates)


def mills(facts):
    totals = {}
    for name, days in re.findall(r"(\w+) was open on (\d+) days", facts.known):
        code = re.search(rf"{name} is mill (M-\d+)", facts.told)[1]
        stones, each = numbers(facts.documents[code].replace(code, ""))
        totals[name] = stones * each * int(days)
    assert set(totals) == set(re.search("mills (.*) ground", facts.question)[1].split(", "))
    assert list(totals.values()).count(max(totals.values())) == 1
    return max(totals, key=totals.get)


def masters(facts):
    (year,) = numbers(facts.known)
    text = facts.documents[codes(facts.told)[0]]
    steps = 0
    while "masters were" not in text:
        name = re.search(r"(\w+)\.$", text)[1]
        text, steps = facts.documents[name], steps + 1
    assert steps == facts.question.count(" of the ")
    pattern = r"were (.+) until (\d+), then (.+) until (\d+), and (.+) after"
    first, until, second, then, third = re.search(pattern, text).groups()
    assert year not in (int(until), int(then))
    return first if year < int(until) else second if year < int(then) else third


def roads(facts):
    length, inns = numbers(facts.about())
    known = numbers(facts.known)
    kilometres = known[0]
    if "rests" in facts.known:
        return length * kilometres * numbers(facts.about(1))[0] + inns * known[-1]
    minutes = numbers(facts.about(1))[0] if "wagon" in facts.told else known[1]
    return length * kilometres * minutes


def ships(facts):
    text = " ".join(facts.documents[code] for code in codes(facts.told))
    laid, launched = (date.fromisoformat(d) for d in re.findall(r"\d{4}-\d\d-\d\d", text))
    known = numbers(facts.known)
    days = (launched - laid).days - known[0]
    return days * (known[1] if "crowns" in facts.question else 1)


def lights(facts):
    text = " ".join(facts.documents[code] for code in codes(facts.told))
    start = Fraction(re.search(r"is (\d+) on night 1", text)[1])
    pattern = r"multiplied by (\d+), then (\d+) is added, and the remainder of dividing by (\d+)"
    factor, shift, modulus = map(int, re.search(pattern, text).groups())
    night = int(re.search(r"night (\d+);", facts.known)[1])
    signals = [int(start)]
    for _ in range(night - 1):
        signals.append((signals[-1] * factor + shift) % modulus)
    return sum(signals) if "the sum of" in facts.question else signals[-1]


def orders(facts):
    (customer,) = codes(facts.told)
    state = re.search(r"state (\w+) count", facts.known)[1]
    rows = facts.rows("orders.csv")
    return sum(int(r["boxes"]) for r in rows if (r["customer"], r["state"]) == (customer, state))


def soundings(facts):
    (station,) = codes(facts.told)
    least, *most = numbers(facts.known)
    return sum(
        row["station"] == station
        and int(row["depth"]) > least
        and all(int(row["wind"]) < limit for limit in most)
        for row in facts.rows("soundings.csv")
    )


def tanks(facts):
    price, *lost = numbers(facts.known)
    lines = [line.partition(":") for line in facts.files["tanks.txt"].splitlines()]
    sizes = {head.split()[1]: numbers(rest) for head, _, rest in lines}
    return sum(prod(sizes[code]) for code in codes(facts.told)) * price - sum(lost)


def wages(facts):
    (crew,) = codes(facts.told)
    bonus = sum(numbers(facts.known.replace("hours.csv", "")))
    rates = {row["worker"]: int(row["rate"]) for row in facts.rows("rates.csv")}
    rows = [row for row in facts.rows("hours.csv") if row["crew"] == crew]
    return sum(int(row["hours"]) * rates[row["worker"]] + bonus for row in rows)


SOLVERS = {
    solve.__name__: solve
    for solve in (cargo, mills, masters, roads, ships, lights, orders, soundings, tanks, wages)
}


def assert_answer(task):
    kind = task.task_id.split("/")[1]
    found = SOLVERS[kind](Facts(task))
    if task.rivals:
        assert found == task.answer
        assert found not in task.rivals
        return
    assert found == Fraction(task.answer) > 9
    if task.twin_files:
        (item,) = task.evidence
        assert SOLVERS[kind](Facts(task, task.twin_files)) == Fraction(item.twin)
    assert task.evidence[-1].shows == task.answer


def test_every_kind_has_a_solver():
    assert SOLVERS.keys() == KINDS.keys()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
@given(
    split=st.sampled_from(["train", "eval", "sample"]),
    seed=st.integers(0, 2**63 - 1),
    number=st.integers(0, 10**6),
)
@settings(max_examples=8, deadline=1000, derandomize=True)
def test_an_independent_solver_agrees(kind, level, split, seed, number):
    assert_answer(make_task(split, seed=seed, number=number, kind=kind, level=level))


@pytest.mark.parametrize("split", ["train", "eval"])
def test_an_independent_solver_agrees_on_the_first_tasks(split):
    for number in range(150):
        kind, level = list(KINDS)[number % 10], LEVELS[number // 10 % 3]
        assert_answer(make_task(split, seed=0, number=number, kind=kind, level=level))

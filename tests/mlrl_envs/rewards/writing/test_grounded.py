import json
import os
from pathlib import Path
from statistics import median

import pytest

from mlrl_envs.rewards.writing.grounded import judge
from mlrl_envs.rewards.writing.tldr import RULES

SOURCE = (
    "My old dog ran away in the storm last night. I looked for him in the park, at the station and "
    "along the river, and I put up posters in every shop. This morning the baker rang me up: he "
    "had found the dog asleep between two sacks of flour, white from nose to tail."
)
SUMMARY = "My dog ran away in a storm. The baker found him asleep among his flour this morning."
PART = RULES.parts[0]
DATA_DIR = os.environ.get("MLRL_DATA_DIR", "")


def _judge(text, part=PART):
    return judge(text, SOURCE, part, (SOURCE,))


def test_an_honest_summary_is_sound():
    assert _judge(SUMMARY).sound > 0.8


@pytest.mark.parametrize(
    ("change", "least", "most"),
    [
        (lambda text: text[0].lower() + text[1:], 0.6, 0.95),
        (lambda text: text.rstrip("."), 0.6, 0.95),
        (lambda text: "\n" + text + "\n", 0.9, 1.0),
        (lambda text: "However, " + text, 0.8, 0.98),
    ],
    ids=["no capital", "no full stop", "line breaks around", "a link to nothing"],
)
def test_a_casual_text_loses_something_but_not_all(change, least, most):
    plain = _judge(SUMMARY).quality
    assert least * plain < _judge(change(SUMMARY)).quality < most * plain


def test_a_copy_is_not_ones_own():
    assert _judge(SOURCE[:120]).own < 0.05


def test_a_text_about_something_else_is_not_true_to_the_source():
    other = "The company has raised the price of its tickets again. Many people now take the bus."
    assert _judge(other).faith == 0.0


def test_a_text_longer_than_asked_loses_size_steadily():
    words = [f"{SUMMARY} " * count for count in (1, 5, 6, 7)]
    sizes = [_judge(text).size for text in words]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 1.0
    assert sizes[-1] == 0.0


def test_a_teammate_of_worth_doubles_what_a_text_is_worth():
    good, bad = _judge(SUMMARY), _judge("")
    assert good.value(bad) == pytest.approx(good.value(good) / (1 + good.sound))
    assert bad.value(good) == 0.0


@pytest.mark.skipif(not DATA_DIR, reason="MLRL_DATA_DIR is not set")
def test_human_summaries_are_told_from_those_of_other_posts():
    with (Path(DATA_DIR) / "tldr.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    right = [judge(r["completion"], r["prompt"], PART, (r["prompt"],)) for r in rows]
    wrong = [
        judge(other["completion"], row["prompt"], PART, (row["prompt"],))
        for row, other in zip(rows, rows[1:] + rows[:1], strict=True)
    ]
    assert median(text.sound for text in right) > 0.6
    assert median(text.sound for text in wrong) == 0.0
    assert sum(a.sound > b.sound for a, b in zip(right, wrong, strict=True)) > 0.93 * len(rows)

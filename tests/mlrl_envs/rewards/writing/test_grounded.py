import json
import math
import os
from pathlib import Path
from statistics import fmean

import pytest

from mlrl_envs.datasets.tldr import load_tldr
from mlrl_envs.rewards.prose import contrast_of
from mlrl_envs.rewards.writing.grounded import measure_text
from mlrl_envs.rewards.writing.tldr import RULES

SOURCE = (
    "My old dog ran away in the storm last night. I looked for him in the park, at the station and "
    "along the river, and I put up posters in every shop. This morning the baker rang me up: he "
    "had found the dog asleep between two sacks of flour, white from nose to tail."
)
SUMMARY = "My dog ran away in a storm. The baker found him asleep among his flour this morning."
PART = RULES.parts[0]
DATA_DIR = os.environ.get("MLRL_DATA_DIR", "")
CONTRAST = contrast_of(tuple(task.source for task in load_tldr("sample")))


def _sound(text, teammate=""):
    return math.prod(measure_text(text, SOURCE, PART, CONTRAST, teammate=teammate).values())


def _part(name, text, **options):
    options = {"teammate": "", **options}
    return measure_text(text, SOURCE, PART, CONTRAST, **options)[name]


def test_an_honest_summary_is_sound():
    assert _sound(SUMMARY) > 0.8


@pytest.mark.parametrize(
    "change",
    [lambda text: text[0].lower() + text[1:], lambda text: text.rstrip(".")],
    ids=["no capital", "no full stop"],
)
def test_a_casual_text_loses_something_but_not_all(change):
    assert 0.6 * _sound(SUMMARY) < _sound(change(SUMMARY)) < 0.95 * _sound(SUMMARY)


def test_a_copy_is_not_ones_own():
    assert _part("own words", SOURCE[:120]) == 0.0
    assert _part("own words", SUMMARY, teammate=SUMMARY) == 0.0


def test_a_text_about_something_else_is_not_about_the_source():
    other = "The company has raised the price of its tickets again. Many people now take the bus."
    assert _part("about the source", other) == 0.0


def test_a_text_longer_than_asked_loses_size_steadily():
    sizes = [_part("size", f"{SUMMARY} " * count) for count in (1, 5, 6, 8)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 1.0
    assert sizes[-1] == 0.0


@pytest.mark.skipif(not DATA_DIR, reason="MLRL_DATA_DIR is not set")
def test_summaries_of_people_are_told_from_those_of_other_posts():
    with (Path(DATA_DIR) / "tldr.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    contrast = contrast_of(tuple(task.source for task in load_tldr("all")))

    def sound(text, source):
        return math.prod(measure_text(text, source, PART, contrast, teammate="").values())

    right = [sound(row["completion"].strip(), row["prompt"]) for row in rows]
    wrong = [
        sound(other["completion"].strip(), row["prompt"])
        for row, other in zip(rows, rows[1:] + rows[:1], strict=True)
    ]
    assert fmean(right) > 0.8
    assert fmean(wrong) < 0.1

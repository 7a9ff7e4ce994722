import itertools
import math

import pytest

from mlrl_learners.report.charts import COLORS
from mlrl_learners.report.styles import colors, stylesheet

GROUNDS = ("page", "card", "code")
TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def luminance(color):
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_a_contrast_of_at_least_4_5(dark):
    found = colors(dark=dark)
    inks = ["ink", "quiet", "c0", "c1", "c3"]  # links, discs of boards, visited links
    pairs = [(ink, ground) for ink in inks for ground in GROUNDS]
    pairs += [("ink", "pill"), ("quiet", "pill"), ("good-ink", "good"), ("warn-ink", "warn")]
    low = {pair: contrast(found[pair[0]], found[pair[1]]) for pair in pairs}
    assert {pair: value for pair, value in low.items() if value < 4.5} == {}


@pytest.mark.parametrize("dark", [False, True])
def test_lines_have_a_contrast_of_at_least_3(dark):
    found = colors(dark=dark)
    lines = [f"c{index}" for index in range(COLORS)]
    low = {(line, on): contrast(found[line], found[on]) for line in lines for on in GROUNDS}
    assert {pair: value for pair, value in low.items() if value < 3} == {}


@pytest.mark.parametrize("dark", [False, True])
def test_edges_of_fields_and_the_focus_have_a_contrast_of_at_least_3(dark):
    found = colors(dark=dark)
    low = {(edge, ground): contrast(found[edge], found[ground])
           for edge in ("edge", "focus") for ground in ("page", "card")}  # fmt: skip
    assert min(low.values()) >= 3, low


def oklab(color):
    """Coordinates in which distance is difference to the eye (Ottosson, 2020)."""
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    cones = [sum(w * p for w, p in zip(row, linear, strict=True)) ** (1 / 3) for row in TO_CONES]
    return [sum(w * c for w, c in zip(row, cones, strict=True)) for row in TO_LAB]


@pytest.mark.parametrize("dark", [False, True])
def test_colours_of_the_first_runs_differ_to_the_eye(dark):
    found = [oklab(colors(dark=dark)[f"c{index}"]) for index in range(7)]
    near = [math.dist(one, other) for one, other in itertools.combinations(found, 2)]
    assert min(near) > 0.15


def test_both_themes_name_the_same_colours():
    assert colors(dark=False).keys() == colors(dark=True).keys()
    assert "--c0" in stylesheet()
    assert ".chart" in stylesheet()

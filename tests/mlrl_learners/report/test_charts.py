import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlrl_learners.report.chart_labels import short_names, spread
from mlrl_learners.report.chart_scales import (
    counted,
    inner_ticks,
    log_ticks,
    nice_ticks,
    number,
    running_mean,
    tick_labels,
)
from mlrl_learners.report.charts import Chart, Series, draw

FINITE = st.floats(-1e9, 1e9, allow_nan=False)
POINTS = st.lists(st.tuples(st.integers(0, 1000).map(float), st.floats()), max_size=30)


def coordinates(markup: str) -> list[float]:
    """Return every position in a drawing."""
    root = ET.fromstring(markup)  # noqa: S314 - made here
    names = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "points")
    written = [element.attrib.get(name, "") for element in root.iter() for name in names]
    return [float(value) for text in written for value in text.replace(",", " ").split()]


@given(POINTS, st.booleans())
def test_any_points_give_a_drawing_inside_its_box(points, large):
    figure = draw(Chart("t", "x", "y", [Series("s", points, "marks")], large=large))
    width = 1000 if large else 340
    assert all(math.isfinite(value) and 0 <= value <= width for value in coordinates(figure))


@given(FINITE, FINITE, st.integers(2, 8), st.booleans())
@example(0.0, 2.220446049250313e-16, 2, True)
def test_ticks_are_even_and_cover_the_range(a, b, count, whole):
    low, high = sorted((a, b))
    ticks = nice_ticks(low, high, count, whole=whole)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert 2 <= len(ticks) <= 2 * count + 3
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack


def test_long_numbers_have_room_beside_the_axis():
    def left(values):
        figure = draw(Chart("t", "x", "y", [Series("s", list(enumerate(values)))]))
        return min(float(x) for x in re.findall(r'<line x1="([\d.]+)"', figure))

    assert left([0.0011, 0.0014]) > left([0, 100])


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("last", [2, 7, 12, 120, 1001, 5_000_000])
def test_lines_fill_the_horizontal_axis(large, last):
    figure = draw(Chart("t", "x", "y", [Series("s", [(1, 0.5), (last, 1)])], large=large))
    (line,) = re.findall(r'<polyline points="([^"]+)"', figure.partition("</svg>")[0])
    first, end = (float(point.partition(",")[0]) for point in line.split())
    axis = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]*class="axis"', figure)[-1]
    assert (first, end) == tuple(map(float, axis))


def test_shares_are_drawn_from_0_to_1():
    figure = draw(Chart("Solved", "x", "share", [Series("s", [(1, 0.2), (2, 0.3)])]))
    assert 'data-y="0.0 1.0 ' in figure


@given(POINTS)
@example([(0.0, 5e-324)])
def test_a_logarithmic_axis_leaves_out_what_it_cannot_show(points):
    figure = draw(Chart("t", "x", "y", [Series("", points, "marks")], log=True))
    assert all(math.isfinite(value) for value in coordinates(figure))
    drawable = [y for _, y in points if 1e-100 < y < 1e100]
    assert figure.count("<circle") == len(drawable)


def test_logarithmic_ticks_are_powers_of_ten_that_cover_the_range():
    assert log_ticks(0.02, 5, 4) == pytest.approx([0.01, 0.1, 1, 10])
    assert log_ticks(1, 1, 4) == [1, 10]
    assert len(log_ticks(1e-90, 1e90, 4)) <= 6


def test_a_band_lies_about_a_line_and_bars_at_marks():
    points, bounds = [(1.0, 0.5), (2.0, 0.5)], [(0.4, 0.6), (0.2, 0.8)]
    line = draw(Chart("t", "x", "y", [Series("s", points, "line", intervals=bounds)]))
    marks = draw(Chart("t", "x", "y", [Series("s", points, "marks", intervals=bounds)]))
    assert (line.count('class="band"'), line.count('class="bar"')) == (1, 0)
    assert (marks.count('class="band"'), marks.count('class="bar"')) == (0, 2)


def test_zeros_are_a_flat_line_that_says_so():
    figure = draw(Chart("t", "x", "y", [Series("s", [(1, 0), (2, 0)])]))
    assert 'data-y="0.0 1.0 ' in figure
    assert "0 throughout" in figure
    assert "0 throughout" not in draw(Chart("t", "x", "y", [Series("s", [(1, 0), (2, 1)])]))


@given(FINITE, FINITE, st.integers(2, 8), st.booleans())
def test_inner_ticks_lie_inside_the_range(a, b, count, whole):
    low, high = sorted((a, b))
    ticks = inner_ticks(low, high, count, whole=whole)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert len(ticks) >= 2
    assert low == high or (ticks[0] >= low - slack and ticks[-1] <= high + slack)


def test_values_that_are_not_finite_are_left_out():
    figure = draw(Chart("t", "x", "y", [Series("s", [(1, math.nan), (2, 1), (3, math.inf)])]))
    assert "nan" not in figure
    assert "inf" not in figure


def test_a_chart_without_points_says_so():
    assert "Nothing yet" in draw(Chart("t", "x", "y", [Series("s", [])]))


def test_axes_title_and_legend_are_written():
    figure = draw(Chart("Loss", "iteration", "nats", [Series("aux", [(0, 1), (1, 2)])]))
    assert all(word in figure for word in ("Loss", "iteration", "nats", "aux"))


def test_a_screen_reader_hears_first_and_last_value():
    figure = draw(Chart("Loss", "x", "y", [Series("aux", [(0, 1.5), (1, 2), (2, 0.25)])]))
    assert "<title>Loss: aux from 1.5 to 0.25</title>" in figure


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (12, "12"), (15000, "15k"), (3e-6, "3e-6"), (-0.5, "-0.5")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (15.53, 15.55, ["15.53", "15.535", "15.54", "15.545", "15.55"]),
        (1.1e6, 1.3e6, ["1.1e6", "1.15e6", "1.2e6", "1.25e6", "1.3e6"]),
        (12340, 12360, ["12.34k", "12.345k", "12.35k", "12.355k", "12.36k"]),
        (0, 1, ["0", "0.5", "1"]),
    ],
)
def test_the_labels_of_an_axis_are_its_ticks(low, high, labels):
    assert tick_labels(nice_ticks(low, high, max(2, len(labels) - 1))) == labels


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 tokens"), (1, "1 token"), (1.0, "1 token"), (2, "2 tokens"), (1e6, "1,000,000 tokens"),
     (math.inf, "inf tokens")],
)  # fmt: skip
def test_one_thing_is_singular(count, text):
    assert counted(count, "token") == text


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=20), st.integers(1, 6))
def test_a_running_mean_is_the_mean_of_what_it_covers(points, window):
    means = running_mean(np.array(points), window).tolist()
    last = [y for _, y in points[-window:]]
    assert means[-1][1] == pytest.approx(sum(last) / len(last))
    assert [x for x, _ in means] == [x for x, _ in points]


@pytest.mark.parametrize("value", [8e-5, -3e-7, 2.0, 5e6])
def test_a_value_that_never_changes_is_told_from_zero(value):
    ticks = nice_ticks(value, value, 3)
    assert min(map(abs, ticks)) > abs(value) / 2


def test_bands_lie_below_every_line_and_are_paler_when_there_are_many():
    def drawn(number_of):
        points = [(0.0, 0.2), (1.0, 0.4)]
        bounds = [(0.1, 0.3), (0.2, 0.6)]
        series = [Series(f"run {n}", points, "line", n, bounds) for n in range(number_of)]
        return str(draw(Chart("Return", "iteration", "mean", series)))

    page = drawn(3)
    assert page.count("<polygon") == 3
    assert page.rindex("<polygon") < page.index("<polyline")
    assert page.count("series bands many") == 3
    assert "many" not in drawn(2)


def large(names, legend=False):
    series = [
        Series(name, [(0.0, 0.1), (1.0, 0.2 + n / 100)], "line", n) for n, name in enumerate(names)
    ]
    return str(draw(Chart("Return", "iteration", "mean", series, large=True, legend=legend)))


def test_lines_of_a_large_chart_without_a_legend_are_named_at_their_ends():
    page = large(["magrpo, mean of 3 runs", "ippo, mean of 3 runs", "x" * 60])
    assert re.findall(r'text-anchor="start">([^<]+)<', page) == ["magrpo", "ippo", "x" * 21 + "…"]
    assert "leader" not in large(["a", "b"], legend=True)
    assert "leader" not in large(["a"])
    assert "leader" not in large([f"run {n}" for n in range(20)])


def test_names_that_begin_alike_are_told_apart():
    assert short_names(["run, mean of 2 runs", "run, mean of 2 runs, from b"]) == [
        "run, mean of 2 runs", "run, mean of 2 runs, …",
    ]  # fmt: skip


@given(st.lists(st.floats(8, 270), min_size=1, max_size=8))
def test_names_do_not_lie_on_each_other(heights):
    placed = spread(heights, 8.0, 270.0)
    assert all(8.0 <= height <= 270.0 for height in placed)
    ordered = sorted(placed)
    assert all(b - a > 14.9 for a, b in itertools.pairwise(ordered))

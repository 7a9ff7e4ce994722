import copy
import re

import pytest

from mlrl_learners.report.bench_tables import draw_crossplay, draw_suite

CROSSPLAY = {
    "suite": {"entries": [{"env": "mlrl/nim-v0"}]},
    "actors": ["script:random", "<b>perfect</b>"],
    "tasks": 4,
    "matrix": {
        "mean": [[0.0, -0.75], [0.75, 0.0]],
        "low": [[0.0, -1.0], [0.25, 0.0]],
        "high": [[0.0, -0.25], [1.0, 0.0]],
    },
    "elo": {"mean": [1360.2, 1639.8], "low": None, "high": None},
    "nash_conv": {"script:random": 1.865, "<b>perfect</b>": None},
}
FIGURES = {"mean": 0.5, "interval": [0.25, 0.75], "solved_rate": 0.5, "episodes": 2, "tokens": 64}
SUITE = {
    "suite": {"name": "smoke", "version": 1},
    "actor": {"name": "random"},
    "complete": True,
    "entries": [{"name": "a", **FIGURES}, {"name": "b", **FIGURES}],
    "overall": FIGURES,
}


def test_a_matrix_shows_means_intervals_elo_and_exact_measures():
    shown = draw_crossplay(CROSSPLAY)
    assert shown.count("<tr>") == 3
    assert 'class="q4">0.750<small>0.250 to 1.000</small>' in shown
    assert 'class="q0">-0.750' in shown
    assert "1640" in shown
    assert "1.865" in shown
    assert "<b>" not in shown


def test_columns_of_a_matrix_are_numbered_and_rows_have_number_and_name():
    shown = draw_crossplay(CROSSPLAY)
    assert re.findall(r'scope="col"><bdi>(.+?)</bdi>', shown) == ["Elo", "NashConv", "1", "2"]
    assert re.findall(r'<th scope="row">(\d) <bdi>', shown) == ["1", "2"]


def test_a_cross_play_without_common_tasks_has_no_figures():
    shown = draw_crossplay({**CROSSPLAY, "tasks": 0, "matrix": None, "elo": None})
    assert len(re.findall("\u2013", shown)) == 2 * 3 + 1


def test_a_suite_shows_every_entry_and_their_mean():
    shown = draw_suite(SUITE)
    assert re.findall(r"<bdi>(\w+)</bdi></th><td>0.500", shown) == ["a", "b", "all"]
    assert "missing" not in shown
    assert "Episodes are missing" in draw_suite({**SUITE, "complete": False})


@pytest.mark.parametrize(("draw", "result"), [(draw_suite, SUITE), (draw_crossplay, CROSSPLAY)])
def test_a_result_of_another_shape_is_not_shown(draw, result):
    assert draw({}) is None
    for name in result:
        for wrong in (3, "x", [[]], {"name": []}):
            draw({**copy.deepcopy(result), name: wrong})

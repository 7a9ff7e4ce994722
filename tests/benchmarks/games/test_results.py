"""Stored results of the games: which curves stay, and what a picture joins."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.games import measures, results
from benchmarks.games.__main__ import main
from benchmarks.games.plans import Method, Stage
from benchmarks.games.table import PLANS
from mlrl_envs.errors import InfraError

METHOD = Method((Stage(2, 2, "magrpo", {}, rounds=2),), "quick")
PLAN = replace(PLANS["kuhn"], points=2, methods={"quick": METHOD})


@pytest.mark.parametrize("game", PLANS)
def test_all_stored_curves_are_whole_and_of_the_present_plan(game):
    stored = json.loads(results.results_file(game).read_text())["runs"]
    assert results.stored_curves(game, PLANS[game]) == stored


def curve(method, seed, updates=(0, 1, 2, 3, 4)):
    measures = [{"update": at, "nash_conv": float(seed), "legal": 1.0} for at in updates]
    return {"method": method, "seed": seed, "minutes": 1.0, "measures": measures}


def test_results_keep_only_curves_that_the_plan_describes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    old = replace(PLAN, methods={"renamed": METHOD, **PLAN.methods})
    cut = curve("quick", 2, updates=(0, 1))
    results.write_results("kuhn", old, [curve("renamed", 0), curve("quick", 1), cut])
    results.write_results("kuhn", PLAN, [curve("quick", 0)])
    assert results.stored_curves("kuhn", PLAN) == [curve("quick", 0), curve("quick", 1)]
    dropped = capsys.readouterr().err
    assert "dropped: renamed, seed 0" in dropped
    assert "dropped: quick, seed 2" in dropped
    larger = replace(PLAN, sft=3)
    results.write_results("kuhn", larger, [curve("quick", 0)])
    assert results.stored_curves("kuhn", larger) == [curve("quick", 0)]


def test_pictures_join_measures_of_the_same_update(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    found = [curve("quick", 0), curve("quick", 1, updates=(0, 2, 4))]
    results._draw_panel(axes, PLAN, found, "")
    assert list(axes.lines[0].get_xdata()) == [0, 2, 4]


def test_measures_of_nothing_are_left_out_and_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    words = ["kuhn", "--methods", "magrpo", "--seeds", "0", "--runs", str(tmp_path / "runs")]
    assert main([*words, "--measure-only"]) == 1
    assert "left out: magrpo, seed 0: not finished" in capsys.readouterr().err
    assert not results.results_file("kuhn").exists()


def test_a_score_without_all_games_is_no_score(tmp_path, monkeypatch):
    broken = SimpleNamespace(mean_return=1.0, failures=("a game",))
    monkeypatch.setattr(measures, "make", lambda *_, **__: None)
    monkeypatch.setattr(measures, "evaluate", lambda **_: broken)
    with pytest.raises(InfraError, match="1 of 200 games failed"):
        measures.measure("score", tmp_path, "mlrl/hanabi-v0", {"variant": "small"})

"""Curves of trees of two turns: runs become a table and a picture, and training asks for trees."""

import json

import pytest

from benchmarks import math_curves
from benchmarks.math_curves import ITERATIONS, VARIANTS, main


@pytest.fixture
def runs(tmp_path):
    for number, variant in enumerate(VARIANTS):
        folder = tmp_path / f"{variant}-0"
        folder.mkdir()
        returns = [{"train/return": 0.1 * number} for _ in range(ITERATIONS)]
        held_out = [
            {"iteration": at, "mean_return": 0.2 + 0.1 * bool(at)} for at in (0, ITERATIONS)
        ]
        for name, records in (("metrics", returns), ("evaluations", held_out)):
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (folder / f"{name}.jsonl").write_text(lines)
    return tmp_path


def test_runs_become_a_table_and_a_picture(runs, capsys):
    pytest.importorskip("matplotlib")
    out, picture = runs / "curves.json", runs / "curves.svg"
    files = ["--out", str(out), "--picture", str(picture)]
    assert main(["--runs", str(runs), "--seeds", "0", "--gather-only", *files]) == 0
    assert "turn_weights: nodes, as before |" in capsys.readouterr().out
    assert len(json.loads(out.read_text())["runs"]) == len(VARIANTS)
    assert picture.stat().st_size > 0


def test_every_run_is_a_configuration_of_its_own(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(math_curves, "_mlrl", lambda *words: asked.append(words))
    math_curves._train("nodes", 3, tmp_path / "nodes-3", tmp_path / "model")
    from mlrl_learners.config.run import load_config

    config = load_config(str(tmp_path / "nodes-3.yaml"))
    assert asked == [
        ("train", str(tmp_path / "nodes-3.yaml"), "--run-dir", str(tmp_path / "nodes-3"))
    ]
    assert config.learner.options["credit"] == {"turn_weights": "nodes"}
    assert config.learner.options["group"]["branching"] == "tree"
    assert (config.train.seed, config.env.options["max_turns"]) == (3, 2)

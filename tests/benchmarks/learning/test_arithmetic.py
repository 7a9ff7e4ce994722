"""Curves of trees of two turns: runs become a table and a picture, and training asks for trees."""

import json

import pytest

from benchmarks.learning import arithmetic as math_curves
from benchmarks.learning.arithmetic import ITERATIONS, VARIANTS, main, run_config
from benchmarks.shared.kept_runs import shared_weights
from mlrl_learners.errors import RunDirError
from tests.benchmarks.finished_runs import write_finished_run


@pytest.fixture
def runs(tmp_path):
    for number, variant in enumerate(VARIANTS):
        config = run_config(variant, 0, "where/it/was/trained")
        returns, held_out = [0.1 * number] * ITERATIONS, {0: 0.2, ITERATIONS: 0.3}
        write_finished_run(tmp_path / f"{variant}-0", config, returns, held_out)
    return tmp_path


def test_runs_become_a_table_and_a_picture(runs, capsys):
    pytest.importorskip("matplotlib")
    out, picture = runs / "curves.json", runs / "curves.svg"
    files = ["--out", str(out), "--picture", str(picture)]
    assert main(["--runs", str(runs), "--seeds", "0", "--gather-only", *files]) == 0
    assert "turn_weights: nodes, as before |" in capsys.readouterr().out
    assert len(json.loads(out.read_text())["runs"]) == len(VARIANTS)
    assert picture.stat().st_size > 0


def test_every_run_is_a_configuration_of_its_own(tmp_path):
    config = run_config("nodes", 3, str(tmp_path))
    assert config.learner.options["credit"] == {"turn_weights": "nodes"}
    assert config.learner.options["group"]["branching"] == "tree"
    assert (config.train.seed, config.env.options["max_turns"]) == (3, 2)


def test_a_finished_run_of_another_configuration_is_not_kept(runs, monkeypatch):
    monkeypatch.setattr(math_curves, "_imitate", lambda runs: runs / "sft")
    shared_weights(runs / "reach-0", ITERATIONS).mkdir(parents=True)
    with pytest.raises(RunDirError, match=r"learner\.model was 'where/it/was/trained'"):
        main(["--runs", str(runs), "--seeds", "0"])


def test_reference_solutions_of_other_options_are_not_imitated(tmp_path, monkeypatch):
    (tmp_path / "references.jsonl").write_text("")
    monkeypatch.setattr(math_curves, "finish", lambda config, run_dir: False)
    assert math_curves._imitate(tmp_path) is None
    monkeypatch.setattr(math_curves, "DEMONSTRATIONS", 3)
    with pytest.raises(RunDirError, match="made in another way"):
        math_curves._imitate(tmp_path)

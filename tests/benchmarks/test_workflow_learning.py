import json

import pytest

from benchmarks import workflow_learning as learning
from benchmarks.workflow_shapes import most_answers

STORED = json.loads(learning.RESULTS.read_text("utf-8"))


@pytest.mark.parametrize("shape", learning.NAMES)
def test_updates_of_all_graphs_have_nearly_the_same_number_of_answers(shape, tmp_path):
    config = learning.run_config(shape, 0, tmp_path)
    rollouts = config.learner.options["group"]["rollouts"]
    answers = rollouts * most_answers(learning.ENV_ID, learning.env_options(shape))
    assert learning.ANSWERS - 8 <= answers <= learning.ANSWERS


def test_gains_are_paired_by_seed():
    records = [
        {"shape": shape, "seed": seed, "answers": 2, "tokens": 5, "before": 1.0, "after": after}
        for shape, afters in {"plain": [2.0, 3.0], "vote": [2.5, 3.5]}.items()
        for seed, after in enumerate(afters)
    ]
    plain, vote = learning.rows(records)
    assert (plain["learnt"], plain["gain"]) == (1.5, 0.0)
    assert (vote["gain"], vote["gain_half_width"]) == (0.5, 0.0)


def test_the_page_has_the_rows_of_the_stored_runs():
    assert learning.rows(STORED["runs"]) == STORED["rows"]
    assert learning.table(STORED["rows"]) in learning.PAGE.read_text("utf-8")


@pytest.mark.slow
def test_a_run_is_trained_once_and_published(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learning, "SFT_UPDATES", 1)
    monkeypatch.setattr(learning, "UPDATES", 2)
    monkeypatch.setattr(learning, "EPISODES", 2)
    monkeypatch.setattr(learning, "ANSWERS", 12)
    words = ["--runs", str(tmp_path), "--seeds", "0", "--shapes", "plain", "critic"]
    assert learning.main(words) == 0
    first = capsys.readouterr().out
    assert "| `critic` | 6 |" in first
    monkeypatch.setattr("mlrl_learners.cli.train.train_config", None)  # nothing is trained again
    assert learning.main(words) == 0
    assert capsys.readouterr().out == first

import json

import pytest

from benchmarks import workflow_learning as learning
from benchmarks.workflow_shapes import most_answers
from mlrl_learners.config.run import to_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import RunDirError

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


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Copies of the stored results and of the page."""
    for name in ("RESULTS", "PAGE"):
        copy = tmp_path / name
        copy.write_bytes(getattr(learning, name).read_bytes())
        monkeypatch.setattr(learning, name, copy)
    return learning.RESULTS, learning.PAGE


def test_a_part_of_the_runs_is_added_to_those_that_are_stored(published):
    before = [path.read_bytes() for path in published]
    assert learning._publish([run for run in STORED["runs"] if run["shape"] == "vote"])
    assert [path.read_bytes() for path in published] == before


def test_a_part_of_the_runs_does_not_replace_those_of_another_plan(published, monkeypatch, capsys):
    before = [path.read_bytes() for path in published]
    monkeypatch.setattr(learning, "UPDATES", 24)
    assert not learning._publish(STORED["runs"][:3])
    assert "another plan" in capsys.readouterr().err
    assert [path.read_bytes() for path in published] == before


def test_runs_that_are_missing_or_of_another_shape_are_left_out(published, tmp_path, capsys):
    before = [path.read_bytes() for path in published]
    run_dir = tmp_path / "vote-0"
    run_dir.mkdir()
    config = learning.run_config("chain", 0, tmp_path)
    (run_dir / "config.yaml").write_text(dump_yaml(to_mapping(config)))
    words = ["--runs", str(tmp_path), "--seeds", "0", "--shapes", "vote", "chain", "--gather-only"]
    assert learning.main([*words, "--publish"]) == 1
    message = capsys.readouterr().err
    assert "left out: chain, seed 0: not trained" in message
    assert "env.options.workflow was 'chain', now 'vote'" in message
    assert [path.read_bytes() for path in published] == before


def test_a_model_of_another_size_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "finish", lambda config, run_dir: False)
    assert learning._model(0, tmp_path) is None
    monkeypatch.setattr(learning, "SIZE", learning.ModelSize(hidden_size=16))
    with pytest.raises(RunDirError, match="made in another way"):
        learning._model(0, tmp_path)


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

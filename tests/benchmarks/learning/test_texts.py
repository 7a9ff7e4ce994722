"""Curves on prose: runs become a table and a picture, and environments can be chosen."""

import json

import pytest

from benchmarks.learning.texts import ITERATIONS, TASKS, draw, main, run_config
from tests.benchmarks.finished_runs import write_finished_run


@pytest.fixture
def runs(tmp_path):
    """A finished run of seed 0 for each environment."""
    for name in TASKS:
        returns = [0.01 * number for number in range(ITERATIONS)]
        config, held_out = run_config(name, 0), {0: 0.1, ITERATIONS: 0.5}
        write_finished_run(tmp_path / f"{name}-0", config, returns, held_out)
    return tmp_path


def test_runs_become_a_table_and_a_picture(runs, capsys):
    pytest.importorskip("matplotlib")
    out, picture = runs / "curves.json", runs / "curves.svg"
    files = ["--out", str(out), "--picture", str(picture)]
    command = ["--runs", str(runs), "--seeds", "0", "--gather-only", *files]
    assert main([*command, "--envs", "tldr"]) == 0
    assert "| tldr | 0.010 [0.010, 0.010] |" in capsys.readouterr().out
    assert main(command) == 0
    assert [run["env"] for run in json.loads(out.read_text())["runs"]] == list(TASKS)
    assert picture.stat().st_size > 0


def test_a_run_is_trained_on_train_tasks_and_evaluated_on_others():
    config = run_config("tldr", 2)
    assert (config.env.id, config.env.options["split"]) == ("mlrl/tldr-v1", "train")
    assert (config.train.seed, config.train.eval_options["split"]) == (2, "eval")


def test_equal_curves_are_drawn_to_equal_files(tmp_path):
    pytest.importorskip("matplotlib")
    curve = {"env": "tldr", "seed": 0, "returns": [0.1, 0.2], "held_out": {0: 0.1, 20: 0.5}}
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    draw([curve], one)
    draw([curve], two)
    assert one.read_bytes() == two.read_bytes()

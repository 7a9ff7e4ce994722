"""`python -m benchmarks.published`: settings are accepted, budgets end runs, tables are whole."""

import json
import sys
import time

import pytest

from benchmarks.published.__main__ import main
from benchmarks.published.plans import EXPERIMENTS
from benchmarks.published.runs import command, run
from benchmarks.published.table import read_run, table
from mlrl_learners.algorithms.learner_configs import LEARNER_CONFIGS
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import load_config


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("smoke", [False, True])
def test_all_settings_of_an_experiment_are_accepted(name, smoke, tmp_path):
    experiment = EXPERIMENTS[name]
    words = command(experiment, 1, tmp_path, smoke=smoke)
    start = words.index(str(tmp_path)) + 1
    config = load_config(experiment.preset, words[start:])
    assert config.train.seed == 1
    assert config.learner.model == ("tiny-random" if smoke else experiment.model)
    assert config.env.options["reward"] == "paper"
    config_type, options = LEARNER_CONFIGS[config.learner.name]
    build_config(config_type, merge_options(options, config.learner.options))


def test_a_run_that_exists_is_continued(tmp_path):
    (tmp_path / "config.yaml").write_text("")
    words = command(EXPERIMENTS["tldr-iac"], 0, tmp_path, smoke=False)
    assert words[-3:] == ["--run-dir", str(tmp_path), "--resume"]


def test_the_end_of_the_budget_interrupts_a_run_and_waits_for_its_checkpoint(tmp_path):
    done = tmp_path / "done"
    program = (
        "import pathlib, signal, sys, time\n"
        "def stop(*_):\n"
        f"    pathlib.Path({str(done)!r}).write_text('saved')\n"
        "    sys.exit(130)\n"
        "signal.signal(signal.SIGINT, stop)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    assert run([sys.executable, "-c", program], time.monotonic() + 2) is None
    assert done.read_text() == "saved"


def test_a_run_within_the_budget_returns_its_status():
    assert run([sys.executable, "-c", "raise SystemExit(4)"], time.monotonic() + 60) == 4


def test_the_table_has_a_row_for_each_experiment_and_names_the_published_figures(tmp_path):
    run_dir = tmp_path / "tldr-iac-0"
    run_dir.mkdir()
    records = [{"iteration": 0, "mean_return": 0.25}, {"iteration": 2, "mean_return": 0.5}]
    (run_dir / "evaluations.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    (run_dir / "metrics.jsonl").write_text('{"seconds": 3600}\n{"seconds": 1800}\n')
    row = read_run("tldr-iac", 0, run_dir)
    text = table([row])
    assert len(text.splitlines()) == 2 + len(EXPERIMENTS)
    line = "| `tldr-iac` | 1 | 2 | 0.250 [0.250, 0.250] | 0.500 [0.500, 0.500] | 1.5 | - |"
    assert line in text
    assert "50.6" in text


def test_a_folder_without_an_evaluation_is_no_row(tmp_path):
    assert read_run("tldr-iac", 0, tmp_path) is None


def test_an_unknown_experiment_is_named_in_one_line(capsys):
    assert main(["tldr-magrp"]) == 2
    assert "unknown experiment 'tldr-magrp'" in capsys.readouterr().err

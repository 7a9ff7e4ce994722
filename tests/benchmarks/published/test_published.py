"""`python -m benchmarks.published`: settings are accepted, and budgets end runs."""

import sys
import time

import pytest

from benchmarks.published import __main__ as published
from benchmarks.published.configs import planned_config
from benchmarks.published.plans import EXPERIMENTS
from benchmarks.published.runs import command, run
from mlrl_learners.algorithms.learner_configs import LEARNER_CONFIGS
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import load_config, save_config

FIRST, SECOND = "tldr-magrpo", "tldr-iac"


@pytest.fixture
def trained(monkeypatch):
    """Commands that were run, each of which ends with the next status of `ends`, else 0."""

    class Commands(list):
        ends = ()

    commands = Commands()

    def end(words, deadline, clock=None):
        commands.append(words)
        return dict(enumerate(commands.ends)).get(len(commands) - 1, 0)

    monkeypatch.setattr(published, "run", end)
    return commands


def call(tmp_path, *words):
    return published.main([*words, "--seeds", "0", "--runs", str(tmp_path)])


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


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("smoke", [False, True])
def test_an_experiment_is_evaluated_after_its_last_iteration(name, smoke):
    train = planned_config(EXPERIMENTS[name], 0, smoke=smoke).train
    assert train.iterations % train.eval_every == 0


def test_a_run_that_exists_is_continued_with_its_whole_configuration(tmp_path):
    new = command(EXPERIMENTS[SECOND], 3, tmp_path, smoke=False)
    assert "--resume" not in new
    (tmp_path / "config.yaml").write_text("")
    continued = command(EXPERIMENTS[SECOND], 3, tmp_path, smoke=False)
    assert [word for word in continued if word != "--resume"] == new
    assert "--resume" in continued


@pytest.mark.parametrize("smoke", [False, True])
def test_a_run_of_another_configuration_is_refused_by_name_and_not_trained(
    smoke, tmp_path, trained, capsys
):
    run_dir = tmp_path / f"{FIRST}-0"
    run_dir.mkdir()
    save_config(planned_config(EXPERIMENTS[FIRST], 0, smoke=not smoke), run_dir / "config.yaml")
    assert call(tmp_path, FIRST, SECOND, *["--smoke"] * smoke) == 1
    assert [str(run_dir) in words for words in trained] == [False]
    message = capsys.readouterr().err
    assert f"'{run_dir}' holds a run of another configuration" in message
    assert "env.options.split is" in message
    assert "--runs" in message


def test_smoke_tests_have_a_folder_of_their_own(tmp_path, trained, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--smoke"]):
        assert published.main([FIRST, "--seeds", "0", *words]) == 0
    folders = [words[words.index("--run-dir") + 1] for words in trained]
    assert folders == [f"runs/published/{FIRST}-0", f"runs/published-smoke/{FIRST}-0"]


def interrupted(tmp_path, status):
    """Run a program that writes a file at an interrupt and ends with a status."""
    done = tmp_path / "done"
    program = (
        "import pathlib, signal, sys, time\n"
        "def stop(*_):\n"
        f"    pathlib.Path({str(done)!r}).write_text('saved')\n"
        f"    sys.exit({status})\n"
        "signal.signal(signal.SIGINT, stop)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    ended = run([sys.executable, "-c", program], time.monotonic() + 2)
    assert done.read_text() == "saved"
    return ended


@pytest.mark.parametrize(("status", "ended"), [(130, None), (0, 0), (4, 4)])
def test_the_end_of_the_budget_interrupts_a_run_and_waits_for_its_checkpoint(
    status, ended, tmp_path
):
    assert interrupted(tmp_path, status) == ended


def test_a_run_within_the_budget_returns_its_status():
    assert run([sys.executable, "-c", "raise SystemExit(4)"], time.monotonic() + 60) == 4


@pytest.mark.parametrize(
    ("hours", "ends", "status", "said"),
    [
        ("1", (0, None), 3, True),  # in the last run
        ("1", (None,), 3, True),
        ("1", (4, None), 1, True),  # an earlier failure is not hidden
        ("1", (4, 0), 1, False),
        ("1", (0, 0), 0, False),
        ("0", (), 3, True),
    ],
)
def test_the_exit_status_tells_failures_from_the_end_of_the_budget(
    hours, ends, status, said, tmp_path, trained, capsys
):
    trained.ends = ends
    assert call(tmp_path, FIRST, SECOND, "--hours", hours) == status
    assert len(trained) == len(ends)
    assert ("the budget has ended" in capsys.readouterr().err) is said


def test_an_unknown_experiment_is_named_in_one_line(capsys):
    assert published.main(["tldr-magrp"]) == 2
    assert "unknown experiment 'tldr-magrp'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_smoke_test_is_continued_by_the_same_command(tmp_path, capsys):
    words = [FIRST, "--smoke", "--seeds", "0", "--runs", str(tmp_path)]
    assert published.main(words) == 0
    first = capsys.readouterr().out
    assert "| `tldr-magrpo` | 1 | 2 |" in first
    assert published.main(words) == 0
    assert capsys.readouterr().out == first

"""Stumbles 3, 12, 13, 20 to 23, 25 and 27: words of a command line, and files that are wrong."""

import os
import re

import pytest

from mlrl_learners.cli import network, spelling
from mlrl_learners.config.run import load_config

STORY = "play mlrl/story-v1"


def test_mlrl_alone_prints_its_commands(type_in):
    status, out, err = type_in("")
    assert (status, err) == (0, "")
    assert "train" in out


def test_the_version_is_printed(type_in):
    status, out, _ = type_in("--version")
    assert status == 0
    assert re.fullmatch(r"mlrl \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (f"{STORY} --split x", "--env.split"),
        (f"{STORY} --max-turns 2", "--env.max_turns"),
        ("train tiny --iterations 3", "--train.iterations"),
        ("train tiny --run_dir x", "--run-dir"),
        ("train tiny --frozen setup", "--learner.team.frozen"),
        ("train tiny --lr 1", "--learner.optimizer.lr"),
        ("train tiny --model x", "--learner.model"),
        ("bench run --suite smoke --max_new_tokens 3", "--learner.sampling.max_new_tokens"),
    ],
)
def test_an_option_is_told_its_right_spelling(command, right, type_in):
    wrong = next(word for word in command.split() if word.startswith("--") and word != "--suite")
    status, out, err = type_in(command)
    assert (status, out) == (2, "")
    assert err == f"mlrl: unknown option {wrong!r}; did you mean {right!r}?\n"


def test_train_names_its_folder_by_preset_and_time(here, type_in):
    (here / "guess.yaml").write_text(
        "env: {id: 'me.py:Guess'}\nlearner: {name: 'my_learner.py:MyLearner'}\n"
    )
    status, out, _ = type_in("train guess.yaml --train.iterations 1")
    assert status == 0
    assert re.search(r"in runs/guess-\d{8}-\d{6}$", out)
    assert (here / out.split()[-1] / "config.yaml").is_file()


def test_a_folder_is_no_configuration(here, type_in):
    status, _, err = type_in(f"train {here}")
    assert status == 2
    assert f"'{here}' is a folder: give a preset or a YAML file" in err


def test_a_learner_without_its_model_is_one_line(here, type_in):
    (here / "story.yaml").write_text("env: {id: mlrl/story-v1}\n")
    status, _, err = type_in("train story.yaml")
    assert (status, err.count("\n")) == (2, 1)
    assert "the learner magrpo needs a model: set learner.model to smollm2-135m-instruct" in err
    assert not (here / "runs").exists()


def test_files_of_examples_are_looked_for_before_anything_is_made(here, type_in, monkeypatch):
    monkeypatch.setattr("mlrl_learners.cli.train.make_learner", lambda _: pytest.fail("loaded"))
    status, _, err = type_in("train sft --learner.examples.episodes nowhere.jsonl --run-dir a")
    assert status == 2
    assert "examples.episodes: there is no file 'nowhere.jsonl'" in err
    assert not (here / "a").exists()


@pytest.mark.parametrize("folder", ["me.py/a", "/proc/a"])
def test_a_folder_that_cannot_be_written_is_told_before_a_model_is_loaded(
    folder, here, type_in, monkeypatch
):
    monkeypatch.setattr("mlrl_learners.cli.train.make_learner", lambda _: pytest.fail("loaded"))
    status, _, err = type_in(f"train tiny --run-dir {folder}")
    assert (status, err.count("\n")) == (1, 1)
    assert f"cannot write '{folder}'" in err


@pytest.mark.parametrize(
    "command",
    [
        "train latin.yaml",
        "bench run --suite latin.yaml --actor random",
        "play mlrl/humaneval-v1 --env.data_path latin.jsonl",
    ],
)
def test_a_file_that_is_not_utf_8_is_one_line(command, here, type_in):
    (here / "latin.yaml").write_bytes("env: {id: caf\xe9}\n".encode("latin-1"))
    (here / "latin.jsonl").write_bytes('{"task_id": "caf\xe9"}\n'.encode("latin-1"))
    status, _, err = type_in(command)
    assert status in (1, 2)
    assert err.count("\n") == 1
    assert "latin" in err
    assert "UTF-8" in err


def test_messages_name_the_folder_that_mlrl_was_installed_from(monkeypatch):
    message = "statistics need scipy: pip install 'mlrl[bench]'"
    monkeypatch.setattr(spelling, "_origin", lambda: "/src/mlrl")
    assert spelling.local_install(message).endswith("pip install '/src/mlrl[bench]'")
    monkeypatch.setattr(spelling, "_origin", lambda: None)
    assert spelling.local_install(message) == message


def test_pass_at_k_is_for_powers_of_two(here, type_json):
    result = type_json("evaluate mlrl/story-v1 --actor random --tasks 1 --samples 20")
    assert list(result["pass_at_k"]) == ["1", "2", "4", "8", "16", "20"]


def test_without_a_network_data_sets_are_looked_for_in_their_cache(monkeypatch):
    def no_address(*_):
        raise OSError("no address")

    monkeypatch.setattr(network.socket, "getaddrinfo", no_address)
    monkeypatch.setattr(network.urllib.request, "getproxies", dict)
    monkeypatch.setenv(network.OFFLINE, "")
    network.look_for_hub().join()
    assert os.environ[network.OFFLINE] == "1"


def test_epochs_take_the_place_of_iterations_and_a_resumed_run_may_have_more(here, type_json):
    command = "train tiny --run-dir r --train.eval_every 0 --train.tasks_per_iteration 8"
    split = "--env.split sample"
    assert type_json(f"{command} {split} --train.epochs 1")["iterations"] == 2
    stored = load_config(here / "r/config.yaml").train
    assert (stored.epochs, stored.iterations) == (1, 2)
    assert type_json("train --run-dir r --resume --train.epochs 1.5")["iterations"] == 2
    assert type_json("train --run-dir r --resume --train.epochs 2")["iterations"] == 3

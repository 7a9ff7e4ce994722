"""`mlrl audit` prints a report and draws a figure, for registered environments of anybody."""

import json
import xml.etree.ElementTree as ET

import pytest

from mlrl_learners.cli import main

ENV_ID = "test/addition-v0"

pytestmark = pytest.mark.usefixtures("addition_env")


def test_it_prints_a_table_and_draws_a_figure(capsys, tmp_path):
    figure = tmp_path / "audit.svg"
    words = ["audit", ENV_ID, "--budget", "20", "--tasks", "2", "--figure", str(figure)]
    assert main(words) == 0
    assert "ratio to honest" in capsys.readouterr().out
    root = ET.fromstring(figure.read_text())  # noqa: S314 - made here
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"honest answers", "many numbers", "answer alone"} <= set(texts)


def test_a_figure_without_a_folder_is_refused_before_the_search(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("mlrl_envs.audit", None, raising=False)
    assert main(["audit", ENV_ID, "--figure", str(tmp_path / "no" / "x.svg")]) == 2
    said = capsys.readouterr()
    assert "needs the folder" in said.err
    assert not said.out


def test_the_table_is_printed_where_the_figure_cannot_be_written(capsys, tmp_path):
    figure = tmp_path / "audit.svg"
    figure.mkdir()
    words = ["audit", ENV_ID, "--budget", "10", "--tasks", "1", "--figure", str(figure)]
    assert main(words) == 1
    said = capsys.readouterr()
    assert "ratio to honest" in said.out
    assert "cannot write" in said.err


def test_its_json_has_the_figures_and_repeats(capsys):
    words = ["audit", ENV_ID, "--budget", "20", "--tasks", "2", "--seed", "3", "--json"]
    reports = []
    for _ in range(2):
        assert main(words) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    assert reports[0]["honest_mean"] == 1.0
    assert reports[0]["seed"] == 3


def test_a_game_is_audited_by_seats(capsys, tmp_path):
    figure = tmp_path / "audit.svg"
    words = ["audit", "mlrl/kuhn-v0", "--budget", "14", "--tasks", "4"]
    assert main([*words, "--figure", str(figure)]) == 0
    assert "earn more than honest play: " in capsys.readouterr().out
    assert "random move" in figure.read_text()
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["script"] == "nash"
    assert {each["seats"] for each in report["results"]} == {"one"}
    assert main([*words, "--honest", "answers.jsonl"]) == 2
    assert "--honest does not apply to games" in capsys.readouterr().err


def test_reward_and_options_reach_the_environment(capsys):
    words = ["audit", "mlrl/story-v1", "--reward", "paper", "--env.split", "sample"]
    words += ["--attacks", "filler,frames", "--budget", "4", "--tasks", "1", "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["options"] == {"split": "sample", "reward": "paper"}
    assert {family["name"] for family in report["families"]} <= {"filler", "frames", "search"}
    assert report["ratio"] is None

"""The page of a run: results of suites, audits of rewards."""

import json
import re


def test_a_folder_of_a_suite_shows_its_result_and_no_training(run, rows, served, ask):
    figures = {"mean": 0.5, "interval": None, "solved_rate": 0, "episodes": 1, "tokens": 0}
    result = {
        "suite": {"name": "smoke", "version": 1},
        "actor": {"name": "random"},
        "complete": True,
        "entries": [{"name": "nim", **figures}],
        "overall": None,
    }
    run.play(0, rows.rollout())
    (run.path / "result.json").write_text(json.dumps(result))
    _, _, text = ask(f"{served}/run?run=first")
    assert "Suite smoke v1" in text
    assert "time in training" not in text
    (run.path / "result.json").write_text("[" * 100_000)
    assert ask(f"{served}/run?run=first")[0] == 200


def test_the_page_of_a_run_shows_the_audit_of_its_reward(run, served, ask):
    run.train(1)
    (run.path / "config.yaml").write_text("env:\n  id: mlrl/story-v1\n")
    _, _, text = ask(f"{served}/run?run=first")
    assert "Audit of the reward grounded" in text


def test_runs_with_curves_are_chosen_before_folders_of_episodes(run, other_run, rows, served, ask):
    run.train(1)
    other_run.play(0, rows.rollout())
    _, _, text = ask(served)
    assert re.findall(r'value="(\w+)" id="run-\d" checked', text) == ["first"]
    assert ">evaluated<" in text


def test_sections_without_content_are_left_out(run, served, ask):
    run.train(1)
    (run.path / "environment.json").unlink(missing_ok=True)
    _, _, text = ask(f"{served}/run?run=first")
    assert "Lost to infrastructure" not in text
    assert "Versions and machine" not in text
    (run.path / "environment.json").write_text('{"cores": 2}')
    assert "Versions and machine" in ask(f"{served}/run?run=first")[2]


def test_a_run_before_its_first_iteration_is_no_evaluation(run, served, ask):
    run.path.mkdir(exist_ok=True)
    (run.path / "metrics.jsonl").write_text("")
    (run.path / "config.yaml").write_text("env: {id: mlrl/story-v1}\ntrain: {iterations: 9}\n")
    _, _, text = ask(served)
    assert ">evaluated<" not in text
    assert "0 of 9 · running" in text
    assert "Configuration" in ask(f"{served}/run?run=first")[2]

"""Results of published experiments: what is a result, what is kept, and what the table averages."""

import json

import pytest

from benchmarks.published import __main__ as published
from benchmarks.published.configs import planned_config
from benchmarks.published.plans import EXPERIMENTS
from benchmarks.published.table import read_run, table
from mlrl_learners.config.run import save_config

NAME = "strbuild-magrpo"
ITERATIONS = 160


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch):
    monkeypatch.setattr(published, "run", lambda *_: 0)


def store(runs, seed, held_out, iterations=ITERATIONS, smoke=False):
    """Write the files of a run that the results are read from."""
    run_dir = runs / f"{NAME}-{seed}"
    run_dir.mkdir(parents=True)
    save_config(planned_config(EXPERIMENTS[NAME], seed, smoke=smoke), run_dir / "config.yaml")
    records = [{"iteration": i, "mean_return": value} for i, value in held_out.items()]
    (run_dir / "evaluations.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    (run_dir / "metrics.jsonl").write_text('{"seconds": 90}\n' * iterations)
    (run_dir / "environment.json").write_text(json.dumps({"packages": {"mlrl": f"0.{seed}"}}))
    return run_dir


def call(runs, *words, out=None):
    extra = [] if out is None else ["--out", str(out)]
    return published.main([NAME, "--runs", str(runs), *words, *extra])


def results(runs):
    return json.loads((runs / "results.json").read_text())


def row(seed, held_out, iterations=ITERATIONS):
    return {
        "experiment": NAME, "seed": seed, "iterations": iterations, "planned": ITERATIONS,
        "hours": 0.5, "held_out": held_out, "versions": {},
    }  # fmt: skip


def test_a_row_has_the_figures_and_versions_of_its_run(tmp_path):
    run_dir = store(tmp_path, 2, {0: 0.25, 160: 0.5})
    assert read_run(NAME, 2, run_dir, planned=ITERATIONS) == {
        **row(2, {"0": 0.25, "160": 0.5}), "hours": 4.0, "versions": {"mlrl": "0.2"},
    }  # fmt: skip


def test_a_folder_without_an_evaluation_is_no_row(tmp_path):
    assert read_run(NAME, 0, tmp_path, planned=ITERATIONS) is None


def test_the_table_has_a_row_for_each_experiment_and_names_the_published_figures():
    text = table([row(0, {"0": 0.25, "160": 0.5})])
    assert len(text.splitlines()) == 2 + len(EXPERIMENTS)
    assert f"| `{NAME}` | 1 | 160 | 0.250 [0.250, 0.250] | 0.500 [0.500, 0.500] | 0.5 |" in text
    assert "50.6" in text


def test_means_are_of_finished_runs_and_others_are_marked():
    rows = [row(0, {"0": 0.2, "160": 0.5}), row(1, {"0": 0.4, "80": 0.9}, iterations=93)]
    line = "| 1 | 160, 93 of 160 (left out) | 0.200 [0.200, 0.200] | 0.500 [0.500, 0.500] | 1.0 |"
    assert f"| `{NAME}` {line}" in table(rows)
    assert f"| `{NAME}` | 0 | 93 of 160 (left out) | - | - | 0.5 |" in table(rows[1:])


def test_a_run_without_its_last_evaluation_is_not_finished():
    assert "160 of 160 (left out)" in table([row(0, {"0": 0.2, "120": 0.5})])


def test_results_of_other_seeds_are_kept(tmp_path):
    store(tmp_path, 0, {0: 0.2, 160: 0.5})
    store(tmp_path, 1, {0: 0.2, 160: 0.7})
    call(tmp_path, "--seeds", "0")
    call(tmp_path, "--seeds", "1")
    assert [run["seed"] for run in results(tmp_path)["runs"]] == [0, 1]


def test_a_stored_result_is_replaced_by_a_later_reading_of_its_run(tmp_path):
    run_dir = store(tmp_path, 0, {0: 0.2, 80: 0.3}, iterations=80)
    call(tmp_path, "--seeds", "0")
    with (run_dir / "evaluations.jsonl").open("a") as file:
        file.write('{"iteration": 160, "mean_return": 0.6}\n')
    (run_dir / "metrics.jsonl").write_text('{"seconds": 90}\n' * 160)
    call(tmp_path, "--seeds", "0")
    assert [run["iterations"] for run in results(tmp_path)["runs"]] == [160]


def test_a_stored_result_of_other_settings_is_removed(tmp_path, capsys):
    store(tmp_path, 0, {0: 0.2, 160: 0.5})
    call(tmp_path, "--seeds", "0")
    stored = results(tmp_path)
    stored["settings"][NAME]["model"] = "another"
    (tmp_path / "results.json").write_text(json.dumps(stored))
    call(tmp_path, "--seeds", "1")
    assert results(tmp_path)["runs"] == []
    assert f"removed: {NAME}, seed 0" in capsys.readouterr().err


@pytest.mark.parametrize("smoke", [False, True])
def test_a_run_of_another_configuration_is_no_result(smoke, tmp_path, capsys):
    store(tmp_path, 0, {0: 0.25, 160: 0.5}, smoke=not smoke)
    call(tmp_path, "--seeds", "0", *["--smoke"] * smoke)
    assert results(tmp_path)["runs"] == []
    shown = capsys.readouterr()
    assert f"left out: {tmp_path / NAME}-0" in shown.err
    assert "0.250" not in shown.out


@pytest.mark.parametrize("spoil", [lambda file: file.write_text(""), lambda file: file.unlink()])
def test_a_run_whose_configuration_cannot_be_read_is_no_result(spoil, tmp_path):
    run_dir = store(tmp_path, 0, {0: 0.25, 160: 0.5})
    spoil(run_dir / "config.yaml")
    call(tmp_path, "--seeds", "0")
    assert results(tmp_path)["runs"] == []


def test_results_of_a_smoke_test_say_so_and_have_its_settings(tmp_path, capsys):
    store(tmp_path, 0, {0: 0.1, 1: 0.1, 2: 0.1}, iterations=2, smoke=True)
    call(tmp_path, "--seeds", "0", "--smoke")
    stored = results(tmp_path)
    assert stored["smoke"] is True
    assert stored["settings"][NAME]["model"] == "tiny-random"
    assert stored["settings"][NAME]["options"]["train.iterations"] == 2
    assert capsys.readouterr().out.startswith("Smoke test")


@pytest.mark.parametrize("old", ['{"smoke": true, "settings": {}, "runs": []}', '{"runs": []}'])
def test_results_are_not_added_to_a_file_of_another_kind(old, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(published, "run", None)  # refused before anything is trained
    out = tmp_path / "there.json"
    out.write_text(old)
    assert call(tmp_path, "--seeds", "0", out=out) == 2
    assert out.read_text() == old
    assert f"'{out}'" in capsys.readouterr().err

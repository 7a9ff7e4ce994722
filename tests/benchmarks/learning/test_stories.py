"""Learning curves: what runs left behind becomes a table and a picture."""

import json

import pytest

from benchmarks.learning.stories import ITERATIONS, KEY, draw, main, run_config, table
from benchmarks.shared import curves
from mlrl_learners.config.run import to_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import RunDirError
from tests.benchmarks.finished_runs import write_finished_run

RISE = 0.3


def gather(folder, method, seed):
    return curves.gather(folder, KEY, method, seed, run_config(method, seed))


def write_run(folder, config, *, start):
    returns = [start + RISE * number / (ITERATIONS - 1) for number in range(ITERATIONS)]
    write_finished_run(folder, config, returns, {0: start, ITERATIONS: start + RISE})


@pytest.fixture
def runs(tmp_path):
    for number, method in enumerate(("magrpo", "marloo", "ippo", "mappo")):
        for seed in (0, 1):
            folder, config = tmp_path / f"{method}-{seed}", run_config(method, seed)
            write_run(folder, config, start=0.1 * number + 0.05 * seed)
    return tmp_path


def test_a_curve_is_what_the_run_wrote(runs):
    curve = gather(runs / "marloo-1", "marloo", 1)
    assert len(curve["returns"]) == ITERATIONS
    assert curve["held_out"] == pytest.approx({0: 0.15, ITERATIONS: 0.45})


def test_the_table_has_the_mean_and_the_range_of_the_seeds_of_each_method(runs):
    curves = [gather(runs / f"ippo-{seed}", "ippo", seed) for seed in (0, 1)]
    row = table(curves).splitlines()[-1]
    assert row.startswith("| `ippo` |")
    assert "0.225 [0.200, 0.250]" in row  # untrained
    assert "0.525 [0.500, 0.550]" in row  # trained
    assert row.endswith("+0.300, +0.300 |")


def test_the_same_runs_give_the_same_files(runs, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    words = ["--runs", str(runs), "--seeds", "0", "1", "--gather-only"]
    written = []
    for name in ("a", "b"):
        out, picture = tmp_path / f"{name}.json", tmp_path / f"{name}.svg"
        assert main([*words, "--out", str(out), "--picture", str(picture)]) == 0
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert "mappo" in capsys.readouterr().out


def test_one_seed_can_be_drawn(runs, tmp_path):
    pytest.importorskip("matplotlib")
    draw([gather(runs / "mappo-0", "mappo", 0)], tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 0


def test_a_run_that_is_not_at_its_end_is_left_out_and_named(runs, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (runs / "ippo-1" / "evaluations.jsonl").write_text('{"iteration": 0, "mean_return": 0.1}\n')
    files = ["--out", str(tmp_path / "a.json"), "--picture", str(tmp_path / "a.svg")]
    assert main(["--runs", str(runs), "--seeds", "0", "1", "--gather-only", *files]) == 1
    assert "left out: ippo, seed 1: not finished" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "a.json").read_text())["runs"]) == 7


def test_a_run_of_another_configuration_is_left_out(runs):
    config = run_config("ippo", 1)
    (runs / "ippo-0" / "config.yaml").write_text(dump_yaml(to_mapping(config)))
    with pytest.raises(RunDirError, match=r"train\.seed was 1, now 0"):
        gather(runs / "ippo-0", "ippo", 0)


def test_a_run_whose_held_out_episodes_failed_is_left_out(runs):
    file = runs / "mappo-0" / "evaluations.jsonl"
    *before, last = file.read_text().splitlines()
    broken = json.dumps({**json.loads(last), "failures": [{"task": "eval/0"}]})
    file.write_text("\n".join([*before, broken]) + "\n")
    with pytest.raises(RunDirError, match="1 held-out episodes failed after iteration 12"):
        gather(runs / "mappo-0", "mappo", 0)


def test_nothing_is_written_without_runs(tmp_path, capsys):
    out = tmp_path / "a.json"
    out.write_text("{}")
    files = ["--out", str(out), "--picture", str(tmp_path / "a.svg")]
    assert main(["--runs", str(tmp_path / "none"), "--gather-only", *files]) == 1
    assert out.read_text() == "{}"
    assert "there is no finished run" in capsys.readouterr().err


def test_runs_of_other_seeds_stay_in_the_results(runs, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "a.json"
    files = ["--out", str(out), "--picture", str(tmp_path / "a.svg")]
    words = ["--runs", str(runs), "--gather-only", *files, "--seeds"]
    assert main([*words, "0", "1"]) == 0
    before = out.read_bytes()
    assert main([*words, "1"]) == 0
    assert out.read_bytes() == before


def test_results_of_another_plan_are_replaced_only_as_a_whole(runs, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "a.json"
    files = ["--out", str(out), "--picture", str(tmp_path / "a.svg")]
    words = ["--runs", str(runs), "--gather-only", *files, "--seeds"]
    assert main([*words, "0", "1"]) == 0
    stored = json.loads(out.read_text())
    out.write_text(json.dumps({**stored, "work": {"env": "mlrl/story-v0"}}))
    assert main([*words, "1"]) == 1
    assert "mappo seed 0" in capsys.readouterr().err
    assert json.loads(out.read_text())["work"] == {"env": "mlrl/story-v0"}
    assert main([*words, "0", "1"]) == 0
    assert json.loads(out.read_text()) == stored

import json

import pytest

from benchmarks.perf.monitor import PAGES, main
from benchmarks.perf.monitor_run import write_run
from mlrl_learners.runs.summaries import summarise


def test_the_run_has_as_many_readable_episodes_as_asked_for(tmp_path):
    write_run(tmp_path / "run", episodes=45)
    rows = [json.loads(line) for line in (tmp_path / "run" / "episodes.jsonl").open()]
    assert len(rows) == 45
    assert {summarise(row).turns for row in rows} == {1, 2}


@pytest.mark.slow
def test_every_figure_is_measured_on_a_small_run(capsys, monkeypatch):
    pytest.importorskip("uvicorn")
    monkeypatch.setattr("benchmarks.perf.monitor_long.ITERATIONS", 30)
    assert main(["--episodes", "60"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["page_seconds"].keys() == PAGES.keys()
    assert all(value > 0 for value in figures["page_seconds"].values())
    long_run = figures["long_run"]
    assert long_run["iterations"] == 30
    assert all(value > 0 for value in long_run.values())

"""Readers of runs that another process may be writing change none of their files."""

from contextlib import suppress

import pytest

from benchmarks import demo
from benchmarks.games import results as games
from benchmarks.games.table import PLANS
from benchmarks.learning.stories import run_config
from benchmarks.published.table import read_run
from benchmarks.recipes import curves as recipe_curves
from benchmarks.shared import curves
from benchmarks.workflows import learning as workflow_learning
from benchmarks.workflows.games import GAMES
from mlrl_learners.errors import RunDirError

EVALUATION = '{"iteration": 0, "mean_return": 0.5, "env_id": "mlrl/story-v1"}\n'
METRICS = '{"iteration": 1, "seconds": 3.0, "train/return": 0.5, "train/tokens": 8}\n'
CONFIG = run_config("magrpo", 0)
READERS = {
    "published": lambda run_dir: read_run("tldr-iac", 0, run_dir, planned=9),
    "curves": lambda run_dir: curves.gather(run_dir, "method", "magrpo", 0, CONFIG),
    "demo": demo.held_out_returns,
    "recipe_curves": lambda run_dir: recipe_curves._record("story", "drmas", 0, run_dir.parent),
    "workflow_learning": lambda run_dir: workflow_learning._record(
        GAMES["stag-hunt"], "plain", 0, run_dir.parent
    ),
}
FOLDERS = {"recipe_curves": "story-drmas-0", "workflow_learning": "plain-0"}


def write(run_dir):
    """Write the files of a live run, of whose last lines only a part is written."""
    run_dir.mkdir(parents=True)
    for name, line in (("evaluations", EVALUATION), ("metrics", METRICS)):
        (run_dir / f"{name}.jsonl").write_text(line + line[:20])


def files(run_dir):
    return {path.name: path.read_text() for path in run_dir.iterdir()}


@pytest.mark.parametrize("name", READERS)
def test_a_line_that_is_being_written_stays(name, tmp_path):
    run_dir = tmp_path / FOLDERS.get(name, "run")
    write(run_dir)
    before = files(run_dir)
    with suppress(RunDirError):  # not finished
        READERS[name](run_dir)
    assert files(run_dir) == before


@pytest.mark.parametrize("name", READERS)
def test_no_file_is_made(name, tmp_path):
    run_dir = tmp_path / FOLDERS.get(name, "run")
    run_dir.mkdir()
    with suppress(RunDirError):  # not trained
        READERS[name](run_dir)
    assert files(run_dir) == {}


def test_a_live_game_is_not_measured_and_not_changed(tmp_path):
    stage = tmp_path / "magrpo-0" / "stage-1"
    write(stage)
    before = files(stage)
    with pytest.raises(RunDirError, match="not finished"):
        games.measure_method(PLANS["kuhn"], "magrpo", 0, tmp_path)
    assert games._seconds(tmp_path / "magrpo-0") == 3.0
    assert files(stage) == before

import pytest

from mlrl_learners.cli import main
from tests.mlrl_learners.cli.bench_runs import SUITE
from tests.mlrl_learners.cli.commands import ENV_ID


@pytest.fixture
def preset(tmp_path):
    """Return the file of a preset in which the fake learner learns to add."""
    path = tmp_path / "student.yaml"
    path.write_text(
        f"env: {{id: {ENV_ID}}}\n"
        "learner: {name: student, options: {patience: 2}}\n"
        "train: {iterations: 3, tasks_per_iteration: 2, eval_every: 3, eval_tasks: 2}\n"
    )
    return str(path)


@pytest.fixture
def run_dir(preset, tmp_path, capsys):
    """Train the preset, and return the folder of the run."""
    assert main(["train", preset, "--run-dir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    return tmp_path / "run"


@pytest.fixture
def suite(tmp_path):
    """Return the file of a suite of two short entries."""
    path = tmp_path / "quick.yaml"
    path.write_text(SUITE)
    return str(path)

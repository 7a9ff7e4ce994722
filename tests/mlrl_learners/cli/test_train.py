import json
import os
import signal
import subprocess
import sys
import time

import pytest

from mlrl_learners.cli import main
from mlrl_learners.runs.files import EPISODES_FILE
from tests.mlrl_learners.cli.commands import run_json

pytestmark = pytest.mark.usefixtures("addition_env", "student")


class TestTrain:
    def test_a_run_is_trained_evaluated_and_kept(self, run_dir):
        lines = (run_dir / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["student/lessons"] for line in lines] == [1.0, 2.0, 3.0]
        returns = [
            json.loads(line)["mean_return"]
            for line in (run_dir / "evaluations.jsonl").read_text().splitlines()
        ]
        assert returns == [0.0, 1.0]

    def test_overrides_reach_the_run(self, preset, tmp_path, capsys):
        words = ["train", preset, "--train.iterations=1", "--run-dir", str(tmp_path / "r")]
        status, result = run_json(capsys, *words, "--learner.patience", "9")
        assert (status, result["iterations"]) == (0, 1)
        assert "patience: 9" in (tmp_path / "r" / "config.yaml").read_text()

    def test_a_finished_run_is_not_overwritten(self, preset, run_dir, capsys):
        assert main(["train", preset, "--run-dir", str(run_dir)]) == 2
        assert "resume" in capsys.readouterr().err

    def test_resume_goes_on_from_the_runs_own_configuration(self, run_dir, capsys):
        words = ["train", "--run-dir", str(run_dir), "--resume", "--train.iterations", "5"]
        status, result = run_json(capsys, *words)
        assert (status, result["iterations"]) == (0, 5)
        assert result["metrics"]["student/lessons"] == 5.0

    def test_a_run_of_before_is_evaluated_but_not_resumed_and_left_as_it_is(
        self, run_dir, capsys, monkeypatch
    ):
        state = max(run_dir.glob("checkpoints/step_*/state.json"))
        kept = json.loads(state.read_text())
        kept.pop("version")
        state.write_text(json.dumps(kept))
        before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
        assert run_json(capsys, "evaluate", str(run_dir))[0] == 0
        words = ["train", "--run-dir", str(run_dir), "--resume", "--train.iterations", "5"]
        with monkeypatch.context() as patch:
            patch.setattr("mlrl_learners.cli.train.make_learner", lambda _: pytest.fail("loaded"))
            assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "is of version 1 of the methods, this is 2" in line
        after = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
        assert after == before

    def test_a_folder_of_a_suite_is_refused_and_left_as_it_is(self, preset, tmp_path, capsys):
        (tmp_path / EPISODES_FILE).write_text('{"key": "a"}\n')
        before = sorted(tmp_path.iterdir())
        assert main(["train", preset, "--run-dir", str(tmp_path)]) == 2
        assert "episodes that are not of a training run" in capsys.readouterr().err
        assert sorted(tmp_path.iterdir()) == before

    def test_a_line_of_another_command_is_named_when_a_run_is_resumed(self, run_dir, capsys):
        with (run_dir / EPISODES_FILE).open("a") as file:
            file.write('{"key": "a"}\n')
        assert main(["train", "--resume", "--run-dir", str(run_dir)]) == 2
        assert "a line that is not of a training run" in capsys.readouterr().err

    def test_a_full_disk_is_status_1(self, preset, tmp_path, capsys):
        (tmp_path / "file").write_text("")
        assert main(["train", preset, "--run-dir", str(tmp_path / "file" / "run")]) == 1
        assert capsys.readouterr().err.splitlines()[-1].startswith("mlrl: cannot write")


def test_sigint_ends_training_with_a_checkpoint_and_status_130(tmp_path):
    command = [sys.executable, "-m", "mlrl_learners", "train", "tiny", "--run-dir"]
    command += [str(tmp_path / "run"), "--train.iterations", "1000", "--train.eval_every", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    done = len(metrics.read_text().splitlines())
    assert (tmp_path / "run" / "checkpoints" / f"step_{done}").is_dir()


def test_the_tiny_preset_goes_the_whole_road(tmp_path, capsys):
    run_dir = str(tmp_path / "run")
    assert main(["train", "tiny", "--run-dir", run_dir]) == 0
    capsys.readouterr()
    status, result = run_json(capsys, "evaluate", run_dir, "--tasks", "2", "--greedy")
    assert status == 0
    assert len(result["episodes"]) == 2
    words = [
        "play",
        "mlrl/story-v1",
        "--actor",
        "tiny-random",
        "--learner.sampling.max_new_tokens",
        "4",
    ]
    status, episode = run_json(capsys, *words)
    assert status == 0
    assert set(episode["turns"][0]["actions"]) == {"setup", "story"}

import json

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

from mlrl_learners.cli import main
from mlrl_learners.runs.files import EPISODES_FILE
from tests.mlrl_learners.cli.bench_runs import bench


class TestRescore:
    @pytest.fixture
    def run_dir(self, suite, tmp_path, capsys):
        bench(suite, "random", tmp_path / "run")
        capsys.readouterr()
        return tmp_path / "run"

    def test_nothing_changes_without_a_reason(self, run_dir, capsys):
        assert main(["rescore", str(run_dir)]) == 0
        assert main(["rescore", str(run_dir / "result.json")]) == 0
        assert capsys.readouterr().out.count("12 episodes, every score as it was") == 2

    def test_change_is_named_and_can_be_kept(self, run_dir, tmp_path, capsys):
        path = run_dir / EPISODES_FILE
        first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
        first["turns"][0]["components"]["setup"]["ghost"] = 0.5
        first["returns"]["setup"] += 0.5
        path.write_text("".join(json.dumps(record) + "\n" for record in [first, *rest]))
        mended = tmp_path / "mended.jsonl"
        assert main(["rescore", str(run_dir), "--json", "--write", str(mended)]) == 1
        (change,) = json.loads(capsys.readouterr().out)["changes"]
        assert change["components"] == {"ghost": [0.25, 0.0]}
        assert main(["rescore", str(mended)]) == 0

    def test_result_is_written_anew_with_its_transcripts(self, run_dir, tmp_path, capsys):
        new = tmp_path / "new.json"
        assert main(["rescore", str(run_dir / "result.json"), "--write", str(new)]) == 0
        assert main(["rescore", str(new)]) == 0
        old = json.loads((run_dir / "result.json").read_text())
        assert json.loads(new.read_text())["overall"] == old["overall"]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--env.max_turns", "3"], "has its own options"),
            (["--write", "new"], "--write NAME.json"),
        ],
    )
    def test_what_cannot_be_done_with_a_result_is_refused(self, run_dir, words, message, capsys):
        assert main(["rescore", str(run_dir / "result.json"), *words]) == 2
        assert message in capsys.readouterr().err

    def test_episodes_of_evaluate_need_no_suite(self, tmp_path, capsys):
        file = tmp_path / "episodes.jsonl"
        words = ["--actor", "random", "--split", "sample", "--tasks", "2", "--episodes", str(file)]
        assert main(["evaluate", "mlrl/math-v1", "--env.max_turns", "1", *words]) == 0
        assert main(["rescore", str(file), "--env.max_turns", "1"]) == 0

    def test_what_is_no_episode_is_a_mistake(self, tmp_path, capsys):
        (tmp_path / "x.jsonl").write_text('{"a": 1}\n{}\n')
        assert main(["rescore", str(tmp_path / "x.jsonl")]) == 2
        assert "is not an episode" in capsys.readouterr().err

    def test_a_rollout_of_training_is_refused_with_what_can_be_scored(self, tmp_path, capsys):
        path = tmp_path / EPISODES_FILE
        path.write_text(json.dumps({"iteration": 1, "rollout": 0, "node": {"turn": 0}}) + "\n")
        assert main(["rescore", str(tmp_path)]) == 2
        words = capsys.readouterr().err
        assert f"{path}:1 is a rollout of training" in words
        assert "mlrl evaluate RUN --episodes FILE" in words

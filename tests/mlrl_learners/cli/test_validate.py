import pytest

from mlrl_learners.cli import main
from tests.mlrl_learners.cli.commands import ENV_ID, run_json

pytestmark = pytest.mark.usefixtures("addition_env", "student")


class TestValidate:
    def test_right_references_pass(self, capsys):
        status, found = run_json(capsys, "validate", ENV_ID, "--batch-size", "3")
        assert status == 0
        assert found["failed"] == 0
        assert [row["task_id"] for row in found["rows"]] == [f"all/{i}" for i in range(4)]
        assert all(row["reference"] for row in found["rows"])

    def test_a_wrong_reference_fails_and_is_named(self, capsys):
        assert main(["validate", ENV_ID, "--env.wrong", "true"]) == 1
        assert "all/2  the reference does not solve it" in capsys.readouterr().out

    @pytest.mark.parametrize("env_id", ["mlrl/puzzle-v0", "mlrl/coder-tester-v1"])
    def test_references_of_several_turns_are_played_to_the_end(self, env_id, capsys):
        status, found = run_json(capsys, "validate", env_id, "--split", "sample")
        assert status == 0
        assert all(row["reference"] for row in found["rows"])
        assert {row["reference_reward"] for row in found["rows"]} == {1.0}

    def test_competitive_games_need_not_be_solved(self, capsys):
        status, found = run_json(capsys, "validate", "mlrl/matrix-v0", "--split", "sample")
        assert status == 0
        assert {row["reference"] for row in found["rows"]} == {None}
        assert all(row["empty_reward"] > 0 for row in found["rows"])

    def test_several_environments_share_a_table(self, capsys):
        status, found = run_json(capsys, "validate", ENV_ID, "mlrl/story-v1", "--split", "all")
        assert status == 0
        assert [report["env_id"] for report in found["environments"]] == [ENV_ID, "mlrl/story-v1"]
        assert main(["validate", ENV_ID, "mlrl/story-v1", "--env.wrong", "true"]) == 2
        assert "name which one" in capsys.readouterr().err

    def test_data_that_is_not_there_fails_and_is_said(self, capsys, monkeypatch):
        monkeypatch.delenv("MLRL_DATA_DIR", raising=False)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        assert main(["validate", ENV_ID, "mlrl/classeval-v1"]) == 1
        printed = capsys.readouterr()
        assert "mlrl/classeval-v1: ClassEval was not found: pass data_path" in printed.err
        assert "no data" in printed.out

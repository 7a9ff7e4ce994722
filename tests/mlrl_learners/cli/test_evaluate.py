import shutil

import pytest

import mlrl_learners
from mlrl_learners.cli import main
from mlrl_learners.runs.files import CONFIG_FILE, EPISODES_FILE, FAILURES_FILE
from tests.mlrl_learners.cli.commands import ENV_ID, run_json

pytestmark = pytest.mark.usefixtures("addition_env", "student")


class TestEvaluate:
    def test_a_run_is_evaluated_at_its_last_checkpoint(self, run_dir, capsys):
        status, result = run_json(capsys, "evaluate", str(run_dir), "--samples", "2")
        assert (status, result["mean_return"], result["split"]) == (0, 1.0, "eval")
        assert result["pass_at_k"] == {"1": 1.0, "2": 1.0}

    def test_a_folder_of_runs_is_answered_with_one_of_them(self, tmp_path, capsys):
        (tmp_path / "rl").mkdir()
        (tmp_path / "rl" / CONFIG_FILE).touch()
        assert main(["evaluate", str(tmp_path)]) == 2
        assert f"give a run, such as '{tmp_path / 'rl'}'" in capsys.readouterr().err

    def test_an_earlier_checkpoint_can_be_named(self, run_dir, capsys):
        numbers = sorted(p.name.split("_")[1] for p in (run_dir / "checkpoints").glob("step_*"))
        assert numbers == ["2", "3"]
        for words in (["--checkpoint", "2"], ["--checkpoint", f"{run_dir}/checkpoints/step_2"]):
            assert run_json(capsys, "evaluate", str(run_dir), *words)[0] == 0
        assert main(["evaluate", str(run_dir), "--checkpoint", "1"]) == 2
        assert "did you mean 'step_" in capsys.readouterr().err

    def test_a_run_can_play_another_environment(self, run_dir, capsys):
        for words in (["--actor", str(run_dir)], ["--checkpoint", str(run_dir)]):
            status, result = run_json(capsys, "evaluate", ENV_ID, *words, "--env.num_tasks", "2")
            assert (status, result["mean_return"], len(result["episodes"])) == (0, 1.0, 2)

    @pytest.mark.parametrize("target", ["run", ENV_ID])
    def test_options_of_its_learner_can_be_changed(self, run_dir, capsys, target):
        words = [target, "--checkpoint"] if target == ENV_ID else []
        words = ["evaluate", *words, str(run_dir)]
        status, result = run_json(capsys, *words, "--learner.patience", "9")
        assert (status, result["mean_return"]) == (0, 0.0)
        assert main([*words, "--learner.patiense", "9"]) == 2
        assert "did you mean 'patience'" in capsys.readouterr().err

    @pytest.mark.parametrize("option", ["--learner.name", "--learner.model"])
    def test_who_plays_is_not_said_twice(self, run_dir, capsys, option):
        for words in ([str(run_dir)], [ENV_ID, "--actor", str(run_dir)]):
            assert main(["evaluate", *words, option, "other"]) == 2
            assert "leave --learner.name and --learner.model out" in capsys.readouterr().err

    def test_another_run_plays_with_options_of_its_own(self, run_dir, tmp_path, capsys):
        config = tmp_path / "run" / "config.yaml"
        other = tmp_path / "other"
        shutil.copytree(run_dir, other)
        config.write_text(config.read_text().replace("patience: 2", "patience: 9"))
        assert run_json(capsys, "evaluate", str(run_dir))[1]["mean_return"] == 0.0
        words = ["evaluate", str(run_dir), "--actor", f"concatenation:{other}"]
        assert run_json(capsys, *words)[1]["mean_return"] == 1.0

    def test_an_endpoint_plays_a_runs_environment_with_options_of_its_own(
        self, run_dir, chat_server, capsys
    ):
        words = ["--actor", f"endpoint:m@{chat_server.url}", "--learner.max_tokens", "5"]
        status, result = run_json(capsys, "evaluate", str(run_dir), *words)
        assert (status, result["mean_return"]) == (0, 0.0)
        assert {request["max_tokens"] for request in chat_server.requests} == {5}

    def test_an_endpoint_is_told_the_tools_of_an_environment(self, run_dir, chat_server, capsys):
        words = ["evaluate", str(run_dir), "--actor", f"endpoint:m@{chat_server.url}"]
        assert run_json(capsys, *words, "--learner.tools", "mlrl/tools-v1")[0] == 0
        names = [tool["function"]["name"] for tool in chat_server.requests[0]["tools"]]
        assert "write_file" in names
        assert main([*words, "--learner.tools", "mlrl/math-v2"]) == 2
        assert "environments with tools: mlrl/tools-v1" in capsys.readouterr().err

    def test_a_run_that_was_started_from_python_can_be_evaluated(self, tmp_path, capsys):
        learner = mlrl_learners.make("student", agents=["left", "right"], patience=2)
        mlrl_learners.train(
            env_id=ENV_ID, learner=learner, iterations=2, run_dir=tmp_path / "r", progress=False
        )
        status, result = run_json(capsys, "evaluate", str(tmp_path / "r"))
        assert (status, result["mean_return"]) == (0, 1.0)

    def test_figures_are_printed_with_the_interval(self, run_dir, capsys):
        assert main(["evaluate", str(run_dir), "--split", "test", "--tasks", "3"]) == 0
        out = capsys.readouterr().out
        assert "(test)" in out
        assert "1.0000  [1.0000, 1.0000]" in out

    def test_chosen_k_parts_and_budgets_are_reported(self, run_dir, capsys):
        words = ["evaluate", str(run_dir), "--samples", "4", "--k", "1", "4"]
        status, result = run_json(capsys, *words)
        assert (status, list(result["pass_at_k"])) == (0, ["1", "4"])
        assert result["component_intervals"] == {"tests": [1.0, 1.0]}
        assert set(result["agent_tokens"]) == {"left", "right"}
        assert result["seconds_per_episode"] > 0
        assert main(words) == 0
        out = capsys.readouterr().out
        assert "  from tests  1.0000  [1.0000, 1.0000]" in out
        assert "pass@4" in out
        assert "pass@2" not in out
        assert " an episode" in out
        assert main([*words, "5"]) == 2
        assert "from 1 to samples = 4" in capsys.readouterr().err

    def test_an_episode_that_infrastructure_broke_is_left_out_and_said(self, capsys):
        assert main(["evaluate", ENV_ID, "--actor", "random", "--env.broken", "true"]) == 0
        assert "1: no worker" in capsys.readouterr().out

    @pytest.mark.parametrize("beside", [CONFIG_FILE, FAILURES_FILE])
    @pytest.mark.parametrize("command", ["evaluate", "collect"])
    def test_the_episodes_of_a_run_are_not_added_to(self, command, beside, tmp_path, capsys):
        file = tmp_path / EPISODES_FILE
        (tmp_path / beside).write_text("")
        option = "--episodes" if command == "evaluate" else "--out"
        assert main([command, ENV_ID, "--actor", "random", option, str(file)]) == 2
        assert "choose another file" in capsys.readouterr().err
        assert not file.exists()

    def test_every_episode_can_be_kept(self, tmp_path, capsys):
        file = tmp_path / "episodes.jsonl"
        words = ["evaluate", ENV_ID, "--actor", "random", "--episodes", str(file)]
        assert main(words) == 0
        assert len(file.read_text().splitlines()) == 4

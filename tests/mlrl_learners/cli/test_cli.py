import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_envs.errors import InfraError
from mlrl_envs.registration import BUILT_IN_TASKS
from mlrl_learners.cli import COMMANDS, main
from mlrl_learners.config.presets import presets
from mlrl_learners.registry import registry

ENV_ID = "test/addition-v0"

pytestmark = pytest.mark.usefixtures("addition_env", "student")


@pytest.fixture
def preset(tmp_path):
    path = tmp_path / "student.yaml"
    path.write_text(
        f"env: {{id: {ENV_ID}}}\n"
        "learner: {name: student, options: {patience: 2}}\n"
        "train: {iterations: 3, tasks_per_iteration: 2, eval_every: 3, eval_tasks: 2}\n"
    )
    return str(path)


@pytest.fixture
def run_dir(preset, tmp_path, capsys):
    assert main(["train", preset, "--run-dir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def run_json(capsys, *words):
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


class TestList:
    def test_names_every_environment_learner_and_preset(self, capsys):
        status, found = run_json(capsys, "list")
        assert status == 0
        names = {section: [row["name"] for row in rows] for section, rows in found.items()}
        assert names["environments"] == list(mlrl_envs.registry)
        assert names["learners"] == list(registry)
        assert names["presets"] == list(presets())
        assert all(row["summary"] for row in found["presets"])

    def test_prints_one_line_each(self, capsys):
        assert main(["list"]) == 0
        out = capsys.readouterr().out
        assert "student  " in out
        assert "learns to add" in out


class TestInfo:
    def test_tells_versions_hardware_and_the_sandbox_tier(self, capsys):
        status, facts = run_json(capsys, "info")
        assert status == 0
        assert facts["packages"]["pettingzoo"]
        assert facts["cores"] >= 1
        assert facts["sandbox"]["tier"] in "ABCD"
        assert facts["sandbox"]["table"]

    def test_prints_tables(self, capsys):
        assert main(["info"]) == 0
        assert "sandbox tier" in capsys.readouterr().out


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "named", "nearest"),
        [
            (["lst"], "'lst'", "'list'"),
            (["list", "--jsn"], "'--jsn'", "'--json'"),
            (["list", "--env.id", "x"], "'--env.id'", ""),
            (["play", "test/additoin-v0"], "'test/additoin-v0'", f"'{ENV_ID}'"),
            (["play", ENV_ID, "--env.splt", "x"], "'splt'", "'split'"),
            (["play", ENV_ID, "--envv.split", "x"], "'--envv.split'", "'--env."),
            (["play", ENV_ID, "--actor", "refrence"], "'refrence'", "'reference'"),
            (["validate", "test/additoin-v0"], "'test/additoin-v0'", f"'{ENV_ID}'"),
            (["evaluate", "test/additoin-v0", "--actor", "random"], "additoin", f"'{ENV_ID}'"),
            (["audit", "test/additoin-v0"], "'test/additoin-v0'", f"'{ENV_ID}'"),
            (["audit", "mlrl/story-v1", "--attacks", "copi"], "'copi'", "'copy'"),
            (["train", "stroy", "--run-dir", "x"], "'stroy'", "'story'"),
            (["train", "story", "--run-dri", "x", "--run-dir", "x"], "'--run-dri'", "'--run-dir'"),
            (["train", "story", "--run-dir", "x", "--trian.seed", "1"], "trian.seed", "train.seed"),
            (["train", "story", "--run-dir", "x", "--train.sed", "1"], "train.sed", "'train.seed'"),
            (
                ["train", "story", "--run-dir", "x", "--learner.name", "magrop"],
                "'magrop'",
                "'magrpo'",
            ),
            (["train", "story", "--run-dir", "x", "--env.id", "mlrl/stroy-v0"], "stroy", "story"),
        ],
    )
    def test_an_unknown_name_is_one_line_with_the_nearest_and_status_2(
        self, capsys, words, named, nearest, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        assert main(words) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("mlrl: ")
        assert captured.err.count("\n") == 1
        assert named in captured.err
        assert nearest in captured.err
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("env_id", sorted(e for e in BUILT_IN_TASKS if e.endswith("-v1")))
    @pytest.mark.parametrize(
        "words",
        [
            ["play"],
            ["validate"],
            ["audit"],
            ["evaluate", "--actor", "random"],
            ["train", "tiny", "--run-dir", "x", "--env.id"],
        ],
        ids=lambda words: words[0],
    )
    def test_a_former_id_is_one_line_with_its_successor(
        self, capsys, words, env_id, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        former = env_id.replace("-v1", "-v0")
        assert main([*words, former]) == 2
        error = capsys.readouterr().err
        assert error == f"mlrl: environment {former!r} was replaced by {env_id!r}\n"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "words",
        [
            ["play"],
            ["play", ENV_ID, "extra"],
            ["play", ENV_ID, "--seed", "-1"],
            ["play", ENV_ID, "--seed", "x"],
            ["play", ENV_ID, "--env.split"],
            ["evaluate", ENV_ID],
            ["monitor", ".", "--port", "99999"],
            ["evaluate", ENV_ID, "--actor", "random", "--tasks", "0"],
            ["evaluate", ENV_ID, "--checkpoint", "nowhere"],
            ["evaluate", "."],
            ["audit", ENV_ID, "--budget", "1"],
            ["audit", ENV_ID, "--honest", "nowhere.jsonl"],
            ["audit", ENV_ID, "--figure", "figure.png"],
            ["audit", ENV_ID, "--attacks", ""],
            ["audit", ENV_ID, "--attacks", "stubs"],
            ["train", "--run-dir", "x"],
            ["train"],
            ["train", "--resume"],
            ["train", "story", "--run-dir", "x", "--train.iterations", "0"],
        ],
    )
    def test_any_other_mistake_is_one_line_and_status_2(self, capsys, words):
        assert main(words) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("mlrl: ")
        assert captured.err.count("\n") == 1

    @pytest.mark.parametrize(
        ("word", "named"),
        [
            ("--learner.group_size=eight", "group.size must be an int, got 'eight'"),
            ("--learner.compute.device=cudaa", "'cudaa'"),
            ("--learner.model=tiny-randm", "did you mean 'tiny-random'"),
            ("--learner.model.setp=tiny-random", "did you mean 'setup'"),
            ("--train.eval_options.split=evl", "did you mean 'eval'"),
            ("--env.max_turns=two", "max_turns must be an int"),
        ],
    )
    def test_a_mistake_of_a_run_is_found_before_anything_is_written(
        self, capsys, tmp_path, word, named
    ):
        if word.startswith("--learner"):
            pytest.importorskip("torch")
        assert main(["train", "tiny", "--run-dir", str(tmp_path / "run"), word]) == 2
        captured = capsys.readouterr()
        assert named in captured.err
        assert captured.err.count("\n") == 1
        assert not (tmp_path / "run").exists()

    def test_debug_shows_where_an_error_arose(self, capsys):
        assert main(["play", "nowhere/x-v0", "--debug"]) == 2
        assert "Traceback" in capsys.readouterr().err

    def test_an_interrupt_is_status_130(self, capsys, monkeypatch):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(mlrl_envs, "make", interrupted)
        assert main(["play", ENV_ID]) == 130
        assert "Traceback" not in capsys.readouterr().err

    def test_a_failure_of_infrastructure_is_status_1_in_one_line(self, capsys, monkeypatch):
        def fails(*_, **__):
            raise InfraError("no worker\ncan be started")

        monkeypatch.setattr(mlrl_envs, "make", fails)
        assert main(["play", ENV_ID]) == 1
        assert capsys.readouterr().err == "mlrl: no worker can be started\n"


class TestPlay:
    def test_the_reference_is_played_by_default(self, capsys):
        status, episode = run_json(capsys, "play", ENV_ID, "--task-id", "train/3")
        assert (status, episode["task_id"], episode["solved"]) == (0, "train/3", True)
        assert episode["turns"][0]["actions"] == {"left": "4", "right": "4"}

    def test_the_transcript_shows_what_was_read_written_and_earned(self, capsys):
        assert main(["play", ENV_ID, "--task-id", "train/3", "--env.split", "train"]) == 0
        out = capsys.readouterr().out
        for text in ("train/3", "left reads", "right writes", "earns 1.0000 (tests 1.0000)"):
            assert text in out

    def test_a_human_ends_an_answer_with_a_dot(self, capsys, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("1\n.\n1\n.\n"))
        words = ["play", ENV_ID, "--task-id", "train/0", "--actor", "human"]
        assert run_json(capsys, *words)[1]["solved"]

    def test_random_play_is_the_same_for_the_same_seed(self, capsys):
        words = ["play", ENV_ID, "--actor", "random", "--seed", "5"]
        assert run_json(capsys, *words) == run_json(capsys, *words)

    def test_what_would_move_the_cursor_is_not_printed(self, capsys, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\x1b[2J\ud800\n.\nx\n.\ny\n.\nz\n.\n"))
        assert main(["play", ENV_ID, "--task-id", "train/0", "--actor", "human"]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\ud800" not in out


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

    def test_a_full_disk_is_status_1(self, preset, tmp_path, capsys):
        (tmp_path / "file").write_text("")
        assert main(["train", preset, "--run-dir", str(tmp_path / "file" / "run")]) == 1
        assert capsys.readouterr().err.splitlines()[-1].startswith("mlrl: cannot write")


class TestEvaluate:
    def test_a_run_is_evaluated_at_its_last_checkpoint(self, run_dir, capsys):
        status, result = run_json(capsys, "evaluate", str(run_dir), "--samples", "2")
        assert (status, result["mean_return"], result["split"]) == (0, 1.0, "eval")
        assert result["pass_at_k"] == {"1": 1.0, "2": 1.0}

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
        assert main([*words, "--learner.tools", "mlrl/math-v1"]) == 2
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

    def test_every_episode_can_be_kept(self, tmp_path, capsys):
        file = tmp_path / "episodes.jsonl"
        words = ["evaluate", ENV_ID, "--actor", "random", "--episodes", str(file)]
        assert main(words) == 0
        assert len(file.read_text().splitlines()) == 4


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


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_lists_every_command_with_its_first_line(name, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    module = importlib.import_module(f"mlrl_learners.cli.{COMMANDS[name]}")
    summary = module.__doc__.split("\n", 1)[0].split(": ", 1)[1]
    assert f"{name} {summary}" in printed

"""A mistake on the command line is one line and an exit status, whatever the command."""

import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_envs.registration import BUILT_IN_TASKS
from mlrl_learners.cli import main
from tests.mlrl_learners.cli.commands import ENV_ID

pytestmark = pytest.mark.usefixtures("addition_env", "student")


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
            ["train", "story", "--run-dir", "x", "--train.seed", str(2**63)],
            ["collect", ENV_ID, "--actor", "random", "--out", "x", "--seed", str(2**63)],
            ["bench", "crossplay", "mlrl/nim-v0", "--actors", "a", "b", "--env.max_turns=x"],
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

    @pytest.mark.parametrize(
        ("words", "named"),
        [(["--run-dir", "nowhere"], "there is no run in 'nowhere'"), ([], "add --run-dir")],
    )
    def test_a_resume_without_a_run_asks_for_the_run(
        self, capsys, tmp_path, monkeypatch, words, named
    ):
        monkeypatch.chdir(tmp_path)
        assert main(["train", "--resume", *words]) == 2
        assert named in capsys.readouterr().err

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

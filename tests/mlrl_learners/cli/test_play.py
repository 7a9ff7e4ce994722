import contextlib
import io
import sys

import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, RefusedError
from mlrl_learners.cli import main
from tests.mlrl_learners.cli.commands import ENV_ID, run_json
from tests.mlrl_learners.conftest import Addition

pytestmark = pytest.mark.usefixtures("addition_env", "student")


class Keeping(Addition):
    """An environment that keeps its references, as those of servers do."""

    def reference_actions(self):
        raise RefusedError("start it with --references")


@pytest.fixture
def keeping_references():
    with contextlib.suppress(InvalidArgumentError):  # registered by the test before
        mlrl_envs.register("tests/keeping-v0", Keeping)
    return "tests/keeping-v0"


class TestPlay:
    @pytest.mark.parametrize("words", [(), ("--actor", "random")])
    def test_texts_are_played_where_references_are_kept(self, capsys, keeping_references, words):
        assert run_json(capsys, "play", keeping_references, *words)[0] == 0

    def test_a_reference_that_is_kept_is_not_played(self, capsys, keeping_references):
        assert main(["play", keeping_references, "--actor", "reference"]) == 1
        assert "start it with --references" in capsys.readouterr().err

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

"""Stumbles 14 and 24: damaged checkpoints, and reports of evaluations and suites."""

import pytest

from mlrl_learners.errors import CheckpointError, RunDirError
from mlrl_learners.training.checkpoint import latest_checkpoint, read_checkpoint, write_checkpoint

SAYS_YES = "me.py:Guess --actor me.py:says_yes"


def test_a_file_of_episodes_is_reported(here, type_in):
    assert type_in(f"evaluate {SAYS_YES} --tasks 3 --episodes ep.jsonl")[0] == 0
    assert type_in("report ep.jsonl") == (0, "ep.html\n", "")
    page = (here / "ep.html").read_text()
    assert "me.py:Guess" in page
    assert "mean return me.py:Guess" in page
    assert "say yes" in page


def test_the_folder_of_a_suite_is_reported(here, type_in):
    (here / "mine.yaml").write_text(
        "name: mine\nversion: 0\nsummary: x\nseeds: [0]\nbudget: {turns: null}\n"
        "entries: [{env: 'me.py:Guess', tasks: 2}]\n"
    )
    words = "--suite mine.yaml --actor me.py:says_yes --run-dir b"
    assert type_in(f"bench run {words}")[0] == 0
    assert type_in("report b")[0] == 0
    assert "say yes" in (here / "b" / "report.html").read_text()


def test_a_file_without_episodes_is_one_line(here, type_in):
    status, _, err = type_in("report me.py")
    assert (status, err.count("\n")) == (2, 1)
    assert "holds no episodes" in err


class SafetensorError(Exception):
    """Stands for that of safetensors, which has no common base with others."""

    __module__ = "safetensors_rust"


class Weights:
    def __init__(self, error=None):
        self.error = error

    def save(self, path):
        (path / "weights").write_text("1")
        if self.error:
            raise self.error

    load = save


ERRORS = [SafetensorError("Error while deserializing header"), OSError(28, "No space left")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_full_disk_leaves_the_checkpoint_before(error, tmp_path):
    write_checkpoint(tmp_path, 1, Weights(), {}, keep=1)
    with pytest.raises(RunDirError, match="cannot write the checkpoint"):
        write_checkpoint(tmp_path, 2, Weights(error), {}, keep=1)
    assert latest_checkpoint(tmp_path).name == "step_1"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_damaged_checkpoint_is_one_line(error, tmp_path):
    path = write_checkpoint(tmp_path, 1, Weights(), {}, keep=1)
    with pytest.raises(CheckpointError, match="cannot be loaded, it may be damaged") as caught:
        read_checkpoint(path, Weights(error))
    assert "\n" not in str(caught.value)

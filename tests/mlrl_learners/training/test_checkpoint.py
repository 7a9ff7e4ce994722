import json

import pytest

from mlrl_learners.errors import CheckpointError, RunDirError
from mlrl_learners.training.checkpoint import (
    check_resumable,
    latest_checkpoint,
    read_checkpoint,
    resume_checkpoint,
    write_checkpoint,
)


class Notebook:
    """Saves one word; may be told what else to do while it saves."""

    def __init__(self, word="", meanwhile=lambda: None):
        self.word, self.meanwhile = word, meanwhile

    def save(self, path):
        (path / "first_half").write_text(self.word)
        self.meanwhile()
        (path / "second_half").write_text(self.word)

    def load(self, path):
        self.word = (path / "first_half").read_text()


class Killed(BaseException):
    """Stands for what nobody catches."""


def die():
    raise Killed


def full_disk():
    raise OSError(28, "No space left on device")


def names(run_dir):
    return sorted(path.name for path in (run_dir / "checkpoints").iterdir())


def test_what_was_written_is_read(tmp_path):
    write_checkpoint(tmp_path, 3, Notebook("three"), {"note": 1}, keep=2)
    learner = Notebook()
    state = read_checkpoint(latest_checkpoint(tmp_path), learner)
    assert (learner.word, state) == ("three", {"iteration": 3, "note": 1})


def age(run_dir, version=None):
    """Make the last checkpoint one of another version; of those before, files do not tell it."""
    file = latest_checkpoint(run_dir) / "state.json"
    state = json.loads(file.read_text())
    state.pop("version")
    file.write_text(json.dumps(state if version is None else {**state, "version": version}))


def test_a_checkpoint_of_before_is_read_but_not_gone_on_with(tmp_path):
    write_checkpoint(tmp_path, 3, Notebook("three"), {}, keep=2)
    check_resumable(tmp_path)
    age(tmp_path)
    with pytest.raises(CheckpointError, match="is of version 1 of the methods, this is 2") as error:
        check_resumable(tmp_path)
    assert "learner.model" in str(error.value)
    assert "\n" not in str(error.value)
    learner = Notebook()
    assert read_checkpoint(latest_checkpoint(tmp_path), learner) == {"iteration": 3}
    assert learner.word == "three"


def test_a_checkpoint_of_a_later_version_is_not_gone_on_with(tmp_path):
    write_checkpoint(tmp_path, 1, Notebook("one"), {}, keep=1)
    age(tmp_path, version=9)
    with pytest.raises(CheckpointError, match="is of version 9 of the methods"):
        check_resumable(tmp_path)


def test_a_run_without_a_checkpoint_may_be_gone_on_with(tmp_path):
    check_resumable(tmp_path)


@pytest.mark.parametrize(("last", "origin"), [(1, "the start"), (2, "the checkpoint before it")])
def test_a_run_cannot_be_gone_on_with_from_a_damaged_state_and_the_error_says_how(
    tmp_path, last, origin
):
    for iteration in range(last):
        write_checkpoint(tmp_path, iteration + 1, Notebook("one"), {}, keep=2)
    path = latest_checkpoint(tmp_path)
    (path / "state.json").write_text("{")
    with pytest.raises(CheckpointError, match="is no checkpoint") as error:
        check_resumable(tmp_path)
    assert str(error.value).endswith(f"; remove {str(path)!r} to go on from {origin}")


def test_a_checkpoint_without_a_file_of_its_learner_says_how_to_go_on(tmp_path):
    write_checkpoint(tmp_path, 1, Notebook("one"), {}, keep=1)
    path = latest_checkpoint(tmp_path)
    assert resume_checkpoint(path, Notebook()) == 1
    (path / "learner/first_half").unlink()
    with pytest.raises(CheckpointError, match=r"it may be damaged: .*; remove "):
        resume_checkpoint(path, Notebook())


@pytest.mark.parametrize("text", ["", "[]", "3", "{}"])
def test_a_damaged_state_is_no_checkpoint(text, tmp_path):
    write_checkpoint(tmp_path, 1, Notebook("one"), {}, keep=1)
    (latest_checkpoint(tmp_path) / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        read_checkpoint(latest_checkpoint(tmp_path), Notebook())


def test_a_checkpoint_is_not_there_before_it_is_complete(tmp_path):
    seen = []
    learner = Notebook(meanwhile=lambda: seen.append(latest_checkpoint(tmp_path)))
    write_checkpoint(tmp_path, 1, learner, {}, keep=1)
    assert seen == [None]
    assert latest_checkpoint(tmp_path).name == "step_1"


def test_whoever_dies_while_writing_leaves_the_one_before(tmp_path):
    write_checkpoint(tmp_path, 1, Notebook("one"), {}, keep=1)
    with pytest.raises(Killed):
        write_checkpoint(tmp_path, 2, Notebook("two", die), {}, keep=1)
    assert latest_checkpoint(tmp_path).name == "step_1"
    write_checkpoint(tmp_path, 2, Notebook("two"), {}, keep=1)  # removes what was left behind
    assert names(tmp_path) == ["step_2"]


def test_a_full_disk_is_told_and_costs_no_earlier_checkpoint(tmp_path):
    write_checkpoint(tmp_path, 1, Notebook("one"), {}, keep=1)
    with pytest.raises(RunDirError, match="No space left on device; free some space and resume"):
        write_checkpoint(tmp_path, 2, Notebook("two", full_disk), {}, keep=1)
    assert names(tmp_path) == ["step_1"]


def test_the_newest_are_kept_by_number_not_by_name(tmp_path):
    for iteration in (8, 9, 10, 11):
        write_checkpoint(tmp_path, iteration, Notebook(), {}, keep=3)
    assert names(tmp_path) == ["step_10", "step_11", "step_9"]
    assert latest_checkpoint(tmp_path).name == "step_11"


def test_a_checkpoint_is_written_over_whole(tmp_path):
    write_checkpoint(tmp_path, 1, Notebook("before"), {}, keep=1)
    write_checkpoint(tmp_path, 1, Notebook("after"), {}, keep=1)
    learner = Notebook()
    read_checkpoint(latest_checkpoint(tmp_path), learner)
    assert learner.word == "after"


def test_what_is_no_checkpoint_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        read_checkpoint(tmp_path, Notebook())

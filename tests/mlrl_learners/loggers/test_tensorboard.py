import sys

import pytest

from mlrl_learners.errors import ConfigError
from mlrl_learners.loggers import Logger, TensorBoardLogger


def read_scalars(run_dir):
    """Return what TensorBoard shows: for each name its points."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(run_dir / "tensorboard")).Reload()
    return {
        name: [(point.step, point.value) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def log_steps(run_dir, steps, value=1.0):
    pytest.importorskip("tensorboard")
    logger = TensorBoardLogger(run_dir)
    for step in steps:
        logger.log({"train/return": value, "main/kl": step / 2}, step)
    logger.close()


def test_it_is_a_logger(tmp_path):
    pytest.importorskip("tensorboard")
    assert isinstance(TensorBoardLogger(tmp_path), Logger)


def test_points_come_back_by_name_and_step(tmp_path):
    log_steps(tmp_path, range(3))
    assert read_scalars(tmp_path) == {
        "train/return": [(0, 1.0), (1, 1.0), (2, 1.0)],
        "main/kl": [(0, 0.0), (1, 0.5), (2, 1.0)],
    }


def test_what_is_done_again_after_a_resume_replaces_what_was_written(tmp_path):
    log_steps(tmp_path, [0, 1, 2, 3, 4], value=1.0)
    log_steps(tmp_path, [3, 4, 5], value=2.0)
    assert read_scalars(tmp_path)["train/return"] == [
        (0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0), (5, 2.0),
    ]  # fmt: skip


def test_points_can_be_read_while_the_run_goes_on(tmp_path):
    pytest.importorskip("tensorboard")
    logger = TensorBoardLogger(tmp_path)
    logger.log({"train/return": 0.25}, 1)
    assert read_scalars(tmp_path) == {"train/return": [(1, 0.25)]}
    logger.close()


def test_a_torn_event_file_loses_no_earlier_point(tmp_path):
    log_steps(tmp_path, range(3))
    file = next((tmp_path / "tensorboard").iterdir())
    file.write_bytes(file.read_bytes()[:-7])
    log_steps(tmp_path, [2])
    assert [step for step, _ in read_scalars(tmp_path)["train/return"]] == [0, 1, 2]


def test_a_missing_tensorboard_names_the_extra(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match=r"mlrl\[tensorboard\]"):
        TensorBoardLogger(tmp_path)

import pytest

from mlrl_envs.errors import UnknownNameError
from mlrl_learners import loggers
from mlrl_learners.errors import ConfigError
from mlrl_learners.loggers import LOGGERS, Logger, open_loggers

OFF = {
    "wandb": "off",
    "wandb_project": "mlrl",
    "wandb_name": None,
    "tensorboard": False,
    "loggers": [],
}


class Recorder:
    """A logger of a user."""

    def __init__(self, run_dir, config):
        self.run_dir, self.config, self.values = run_dir, config, []

    def log(self, metrics, step):
        self.values.append((step, dict(metrics)))

    def close(self):
        pass


def opened(run_dir, **logging):
    return open_loggers(run_dir, {"logging": {**OFF, **logging}})


def test_nothing_is_opened_unless_asked_for(tmp_path):
    assert opened(tmp_path) == []


@pytest.mark.parametrize("name", LOGGERS)
def test_every_registered_logger_opens_by_name(tmp_path, name):
    (logger,) = opened(tmp_path, loggers=[name])
    assert isinstance(logger, Logger)
    logger.close()


def test_a_function_of_the_user_opens_a_logger(tmp_path, monkeypatch):
    monkeypatch.setattr(loggers, "Recorder", Recorder, raising=False)
    (logger,) = opened(tmp_path, loggers=["mlrl_learners.loggers:Recorder"])
    logger.log({"loss": 1.0}, 3)
    assert logger.values == [(3, {"loss": 1.0})]
    assert logger.config["logging"]["loggers"] == ["mlrl_learners.loggers:Recorder"]


def test_a_new_logger_is_one_line_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(loggers, "Recorder", Recorder, raising=False)
    monkeypatch.setitem(LOGGERS, "recorder", "mlrl_learners.loggers:Recorder")
    (logger,) = opened(tmp_path, loggers=["recorder"])
    assert logger.run_dir == tmp_path


def test_an_unknown_name_or_function_is_named(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown logger 'tensorbord'.*tensorboard"):
        opened(tmp_path, loggers=["tensorbord"])
    with pytest.raises(ConfigError, match=r"logger 'no_such.module:thing' cannot be imported"):
        opened(tmp_path, loggers=["no_such.module:thing"])

"""Checks before a run directory is opened."""

import pytest

from mlrl_learners.errors import ConfigError
from mlrl_learners.runs import directory

CONFIG = {"learner": {"options": {"optimizer": {"lr": 1e-3}}}, "env": {"server": "a:1"}}
ENVIRONMENT = {"packages": {"torch": "2.13.0+cpu", "wandb": "0.31.0"}, "env": {"data": "abc"}}


@pytest.fixture
def check_with_second(monkeypatch):
    """Check a process whose second has other arguments."""

    def check(config, environment):
        sent = []
        monkeypatch.setattr(directory, "exchange", lambda value: [sent.append(value) or value])
        directory.check_same_everywhere(config, environment)
        monkeypatch.setattr(directory, "exchange", lambda value: [value, *sent])
        directory.check_same_everywhere(CONFIG, ENVIRONMENT)

    return check


@pytest.mark.parametrize(
    ("config", "environment"),
    [
        (CONFIG, ENVIRONMENT),
        ({**CONFIG, "env": {"server": "b:1"}}, ENVIRONMENT),
        (CONFIG, {**ENVIRONMENT, "packages": {"torch": "2.13.0+cu130"}}),
    ],
    ids=["equal", "server", "build"],
)
def test_processes_that_compute_the_same_may_differ(check_with_second, config, environment):
    check_with_second(config, environment)


@pytest.mark.parametrize(
    ("config", "environment", "message"),
    [
        ({**CONFIG, "learner": {"options": {"optimizer": {"lr": 1e-2}}}}, ENVIRONMENT,
         "learner.options.optimizer.lr was 0.001, now 0.01"),
        (CONFIG, {**ENVIRONMENT, "packages": {"torch": "2.12.0"}}, "it has {'torch': '2.12.0'}"),
        (CONFIG, {**ENVIRONMENT, "env": {"data": "abd"}}, "it has other tasks"),
    ],
    ids=["settings", "packages", "tasks"],
)  # fmt: skip
def test_process_that_would_train_another_run_is_refused(
    check_with_second, config, environment, message
):
    with pytest.raises(
        ConfigError, match=f"process 1 of this run differs from process 0: {message}"
    ):
        check_with_second(config, environment)

"""Checks before a run directory is opened."""

import pytest

from mlrl_learners.errors import ConfigError
from mlrl_learners.runs import directory

CONFIG = {"learner": {"options": {"optimizer": {"lr": 1e-3}}}, "env": {"server": "a:1"}}
FASTER = {**CONFIG, "learner": {"options": {"optimizer": {"lr": 1e-2}}}}


@pytest.fixture
def check_with_second(monkeypatch):
    """Check a process whose second has other arguments."""

    def check(config=CONFIG, fingerprint="abc", **versions):
        second = (config, {"torch": "2.13.0", **versions}, fingerprint)
        monkeypatch.setattr(directory, "computing_versions", lambda: {"torch": "2.13.0"})
        monkeypatch.setattr(directory, "exchange", lambda value: [value, second])
        directory.check_same_everywhere(CONFIG, "abc")

    return check


@pytest.mark.parametrize("config", [CONFIG, {**CONFIG, "env": {"server": "b:1"}}])
def test_processes_that_compute_the_same_may_use_different_servers(check_with_second, config):
    check_with_second(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": FASTER}, "learner.options.optimizer.lr was 0.001, now 0.01"),
        ({"torch": "2.12.0"}, "it has {'torch': '2.12.0'}, the first {'torch': '2.13.0'}"),
        ({"fingerprint": "abd"}, "it has other tasks"),
    ],
    ids=["settings", "packages", "tasks"],
)
def test_process_that_would_train_another_run_is_refused(check_with_second, change, message):
    expected = f"process 1 of this run differs from process 0: {message}"
    with pytest.raises(ConfigError, match=expected):
        check_with_second(**change)

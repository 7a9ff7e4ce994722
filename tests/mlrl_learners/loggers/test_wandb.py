import sys
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from mlrl_learners.errors import ConfigError
from mlrl_learners.loggers import WandbLogger
from mlrl_learners.loggers.wandb import open_logger


def test_a_missing_wandb_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"mlrl\[wandb\]"):
        WandbLogger(tmp_path)


def test_an_unknown_wandb_mode_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'on'"):
        WandbLogger(tmp_path, mode="on")


def test_wandb_offline_writes_below_the_run_directory_and_resumes_the_same_run(tmp_path, capfd):
    pytest.importorskip("wandb")
    for step in range(2):
        logger = WandbLogger(tmp_path, config={"seed": 0})
        logger.log({"team_return": 0.5}, step=step)
        logger.close()
    run_id = (tmp_path / "wandb" / "run_id").read_text().strip()
    runs = list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert len(runs) == 2
    assert {path.stem for path in runs} == {f"run-{run_id}"}
    assert capfd.readouterr().out == ""


def test_entity_group_and_tags_of_the_configuration_reach_wandb(tmp_path, monkeypatch):
    from mlrl_learners.config.run import LoggingConfig

    asked = {}
    fake = SimpleNamespace(
        init=lambda **options: asked.update(options), Settings=dict, Error=RuntimeError
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    logging = LoggingConfig(
        wandb="online", wandb_entity="team", wandb_group="seeds", wandb_tags=["a", "b"]
    )
    open_logger(tmp_path, {"logging": asdict(logging)})
    assert (asked["entity"], asked["group"], asked["tags"]) == ("team", "seeds", ["a", "b"])

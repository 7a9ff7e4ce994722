"""Configurations of stored runs, converted to the current names of options."""

import dataclasses
from pathlib import Path

from mlrl_learners.config.option_places import grouped
from mlrl_learners.config.run import RunConfig, load_config

__all__ = ["load_stored_config"]


def load_stored_config(path: Path) -> RunConfig:
    """Read the configuration of a run; flat options of earlier versions are moved to their groups.

    Args:
        path: `config.yaml` of a run directory.

    Raises:
        UnknownNameError: If there is no such file, or it has an unknown key.
        ConfigError: If a value has the wrong type or is outside its range.
    """
    config = load_config(path)
    options = grouped(config.learner.name, config.learner.options)
    return dataclasses.replace(config, learner=dataclasses.replace(config.learner, options=options))

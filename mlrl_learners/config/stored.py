"""Configurations as runs store them: current names of options, absolute paths of files."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from mlrl_envs.references import absolute
from mlrl_learners.config.code import CodeConfig
from mlrl_learners.config.env import with_absolute_id
from mlrl_learners.config.option_places import grouped
from mlrl_learners.config.run import RunConfig, load_config

__all__ = ["load_stored_config", "with_absolute_paths"]


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


def with_absolute_paths(config: RunConfig, imports: Sequence[str] = ()) -> RunConfig:
    """Return the configuration with absolute paths of Python files, for use in any folder.

    Args:
        config: A configuration.
        imports: Further modules and files for `code.imports`.
    """
    places = dict.fromkeys(map(absolute, [*config.code.imports, *imports]))
    return dataclasses.replace(
        config,
        env=with_absolute_id(config.env),
        learner=dataclasses.replace(config.learner, name=absolute(config.learner.name)),
        code=CodeConfig(list(places)),
    )

"""Configurations as runs store them: current names of options, absolute paths of files."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_envs.references import absolute
from mlrl_learners.config.code import CodeConfig
from mlrl_learners.config.env import stored_options, with_absolute_id
from mlrl_learners.config.option_places import grouped
from mlrl_learners.config.run import RunConfig, load_config

__all__ = ["load_stored_config", "with_absolute_paths", "with_absolute_values"]


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


def with_absolute_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration with absolute paths, as `with_absolute_paths` does.

    Args:
        values: JSON values of any version; sections and keys may be missing.
    """
    found = dict(values)
    sections = {name: each for name, each in values.items() if isinstance(each, Mapping)}
    env, learner, code = (sections.get(name, {}) for name in ("env", "learner", "code"))
    if "id" in env:
        options = stored_options(env["id"], env.get("options") or {})
        found["env"] = {**env, "id": absolute(env["id"]), "options": options}
    if "name" in learner:
        found["learner"] = {**learner, "name": absolute(learner["name"])}
    if "imports" in code:
        found["code"] = {**code, "imports": list(dict.fromkeys(map(absolute, code["imports"])))}
    return found

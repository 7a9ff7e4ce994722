"""Stages of a configuration: runs one after another, each from the weights of the one before it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import RunConfig, from_mapping, import_code, to_mapping
from mlrl_learners.errors import ConfigError

__all__ = ["STAGES", "has_stages", "stage_configs", "stages_mapping"]

STAGES = "stages"
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")


def has_stages(raw: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a parsed configuration has stages."""
    return isinstance(raw, Mapping) and STAGES in raw


def stage_configs(raw: Mapping[str, Any], overrides: Sequence[str] = ()) -> dict[str, RunConfig]:
    """Return the configuration of each stage, in order, and import the code that they name.

    A stage has the sections of a configuration; keys that it leaves out are those of the file.
    Options of environments and learners are merged, group by group. Stages but the first have no
    model: they start from the stage before.

    Args:
        raw: A parsed configuration with `stages`, a mapping of names to sections.
        overrides: Words of the command line, which apply to every stage.

    Raises:
        UnknownNameError: If there is no such key.
        ConfigError: If stages are no mapping, a name is not made of letters, digits, _ and -, a
            stage but the first names a model, or a value has the wrong type or range.
    """
    stages = raw[STAGES]
    if not isinstance(stages, Mapping) or not stages:
        raise ConfigError(f"stages must map names to sections, got {stages!r}")
    common = {name: value for name, value in raw.items() if name != STAGES}
    found: dict[str, RunConfig] = {}
    for name, sections in stages.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"a stage is named by letters, digits, _ and -, got {name!r}")
        if not isinstance(sections, Mapping | None):
            raise ConfigError(f"stage {name!r} must be a mapping of sections, got {sections!r}")
        if found and "model" in ((sections or {}).get("learner") or {}):
            raise ConfigError(f"stage {name!r} starts from the stage before it: leave model out")
        config = import_code(from_mapping(_merged(common, sections or {}), overrides))
        found[name] = _without_model(config) if found else config
    return found


def stages_mapping(stages: Mapping[str, RunConfig]) -> dict[str, Any]:
    """Return stages with every key; `stage_configs` returns equal stages."""
    sections = {name: to_mapping(config) for name, config in stages.items()}
    for each in list(sections.values())[1:]:
        del each["learner"]["model"]
    return {STAGES: sections}


def _without_model(config: RunConfig) -> RunConfig:
    return replace(config, learner=replace(config.learner, model=None))


def _merged(common: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(common)
    for name, section in sections.items():
        before = merged.get(name)
        if not isinstance(before, Mapping) or not isinstance(section, Mapping):
            merged[name] = section
            continue
        merged[name] = {**before, **section}
        first, second = before.get("options"), section.get("options")
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            merged[name]["options"] = merge_options(first, second)
    return merged

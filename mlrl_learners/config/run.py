"""Configuration of a run: reading, overriding, checking and saving.

A configuration is read from a YAML file, changed by `--key value` overrides, and written to the
run directory. Every key is a field of a frozen dataclass, and its type is checked. The mappings
`options`, `learner.model`, `train.eval_options` and those of `opponents` accept any key here:
environments and learners check their own options.
"""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from mlrl_envs.references import import_module
from mlrl_learners.config.code import CodeConfig
from mlrl_learners.config.env import EnvConfig, with_env_mapping
from mlrl_learners.config.opponents import OpponentsConfig
from mlrl_learners.config.option_places import option_path
from mlrl_learners.config.options import accepts, describe_type
from mlrl_learners.config.overrides import parse_values, split_overrides
from mlrl_learners.config.presets import read_source
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.config.sections import LoggingConfig, TrainConfig
from mlrl_learners.config.yaml import dump_yaml, parse_value
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.types import Branching, JointMode, RolloutConfig

__all__ = [
    "SECTIONS",
    "CodeConfig",
    "EnvConfig",
    "LearnerConfig",
    "LoggingConfig",
    "RayConfig",
    "RolloutOverrides",
    "RunConfig",
    "TrainConfig",
    "from_mapping",
    "import_code",
    "known_keys",
    "load_config",
    "save_config",
    "to_mapping",
]


@dataclass(frozen=True)
class LearnerConfig:
    """The learner of a run and the models of its agents.

    Attributes:
        name: A learner of `mlrl list`.
        model: Name, folder or hub id of a model for all agents, or a mapping from each agent to its
            model; null for learners without models.
        options: Groups of options of the learner, such as `optimizer: {lr: 1e-5}`.
    """

    name: str = "magrpo"
    model: str | dict[str, str] | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RolloutOverrides:
    """Rollout settings that replace those of the learner; null keeps the learner's setting.

    Attributes:
        num_samples: Completions per agent at each node, at least 1.
        joint_mode: `aligned` combines the j-th completions of all agents, `cross` plays every
            combination, `replay` every answer beside the first ones of the others.
        branching: `tree` continues from every joint action, `chain` from one drawn at random,
            `greedy` from that of highest reward.
        num_rollouts: Rollouts of each task, at least 1.
        max_resamples: Most collections that replace tasks without spread, at least 0.
    """

    num_samples: int | None = None
    joint_mode: JointMode | None = None
    branching: Branching | None = None
    num_rollouts: int | None = None
    max_resamples: int | None = None

    def apply(self, asked: RolloutConfig) -> RolloutConfig:
        """Return the rollout settings of the learner with the values set here."""
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(asked, **chosen)


@dataclass(frozen=True)
class RunConfig:
    """Complete configuration of a training run.

    Attributes:
        env: The environment; in a file also a list of several, see `several_envs`.
        learner: The learner and the models of its agents.
        rollout: Rollout settings that replace those of the learner.
        train: Length of the training, checkpoints and evaluations.
        logging: Loggers.
        opponents: Opponents of the learner, in training and in evaluations.
        code: Code that registers environments, learners or loggers.
        ray: Sampling by processes that Ray starts.
    """

    env: EnvConfig
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    rollout: RolloutOverrides = field(default_factory=RolloutOverrides)
    train: TrainConfig = field(default_factory=TrainConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    opponents: OpponentsConfig = field(default_factory=OpponentsConfig)
    code: CodeConfig = field(default_factory=CodeConfig)
    ray: RayConfig = field(default_factory=RayConfig)


SECTIONS: Mapping[str, type] = {
    "env": EnvConfig,
    "learner": LearnerConfig,
    "rollout": RolloutOverrides,
    "train": TrainConfig,
    "logging": LoggingConfig,
    "opponents": OpponentsConfig,
    "code": CodeConfig,
    "ray": RayConfig,
}
_OPEN = frozenset(
    {
        *("env.options", "learner.options", "learner.model", "train.eval_options"),
        *("opponents.agents", "opponents.eval_agents"),
    }
)
_SHORTHAND = ("env", "learner")
"""Sections where `--section.name` means `--section.options.name` unless it is a key."""


def known_keys() -> list[str]:
    """Return the dotted names of all configuration keys, in order."""
    return [f"{section}.{name}" for section in SECTIONS for name in _names(section)]


def load_config(source: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a configuration, and import the code that it names in `code.imports`.

    Args:
        source: Name of a preset, or path of a YAML file.
        overrides: Command-line words such as `["--train.iterations", "3"]` or
            `["--train.iterations=3"]`. `--env.split eval` is short for
            `--env.options.split eval`, and `--learner.group.size 8` for
            `--learner.options.group.size 8`.

    Raises:
        UnknownNameError: If there is no such preset, file or key.
        ConfigError: If a value has the wrong type or is outside its range, or the file is not
            YAML.
    """
    return import_code(from_mapping(read_source(source), overrides))


def import_code(config: RunConfig) -> RunConfig:
    """Import the code that a configuration names in `code.imports`, and return it."""
    for place in config.code.imports:
        import_module(place)
    return config


def from_mapping(raw: object, overrides: Sequence[str] = ()) -> RunConfig:
    """Build a configuration from a mapping of sections; see `load_config` for the errors."""
    mapping = _checked_sections(raw)
    closed = {}
    learner = mapping.get("learner", {}).get("name", LearnerConfig.name)
    for key, text in split_overrides(overrides):
        field_key, rest = _resolve(key)
        rest = option_path(learner, rest) if field_key == "learner.options" else rest
        if field_key in _OPEN:
            _set(mapping, [*field_key.split("."), *rest], parse_value(text, f"--{key}"))
        else:
            closed[field_key] = text
    for key, value in parse_values(closed, {key: _annotation(key) for key in closed}).items():
        _set(mapping, key.split("."), value)
    return RunConfig(**{name: _section(name, mapping.get(name, {})) for name in SECTIONS})


def to_mapping(config: RunConfig) -> dict[str, Any]:
    """Return a configuration as nested dicts with every key; those of `ray` if it is enabled."""
    mapping = dataclasses.asdict(config)
    if not config.ray.enabled:
        del mapping["ray"]
    return mapping


def save_config(config: RunConfig, path: Path) -> None:
    """Write a configuration to a YAML file; `load_config` returns an equal configuration."""
    path.write_text(dump_yaml(to_mapping(config)), "utf-8")


def _names(section: str) -> list[str]:
    return [item.name for item in dataclasses.fields(SECTIONS[section])]


def _checked_sections(raw: object) -> dict[str, dict[str, Any]]:
    """Copy the mapping two levels deep; raise an error for unknown keys."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"a configuration is a mapping of {', '.join(SECTIONS)}, got {raw!r}")
    sections: dict[str, dict[str, Any]] = {}
    for section, values in with_env_mapping(raw).items():
        if section not in SECTIONS:
            raise unknown_name("key", section, {*SECTIONS, "stages"} - {section})
        if not isinstance(values, Mapping | None):
            raise ConfigError(f"{section} must be a mapping of keys to values, got {values!r}")
        for name in values or {}:
            if name not in _names(section):
                raise unknown_name("key", f"{section}.{name}", known_keys())
        sections[section] = dict(values or {})
    return sections


def _resolve(key: str) -> tuple[str, list[str]]:
    """Split a dotted key into a field and the path inside the value of that field."""
    section, _, inner = key.partition(".")
    name, *rest = inner.split(".")
    field_key = f"{section}.{name}"
    if field_key in known_keys() and (not rest or field_key in _OPEN):
        return field_key, rest
    if (
        section in _SHORTHAND
        and name
        and not difflib.get_close_matches(name, _names(section), 1, 0.75)
    ):
        return f"{section}.options", [name, *rest]
    raise unknown_name("key", key, known_keys())


def _set(mapping: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        inner = mapping.get(name)
        mapping[name] = dict(inner) if isinstance(inner, Mapping) else {}
        mapping = mapping[name]
    mapping[path[-1]] = value


def _annotation(key: str) -> Any:  # noqa: ANN401 - type forms have no common type
    section, name = key.split(".")
    return get_type_hints(SECTIONS[section])[name]


def _section(name: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of eight types
    """Build a section from checked names and unchecked values."""
    for key, value in values.items():
        if not accepts(_annotation(f"{name}.{key}"), value):
            expected = describe_type(_annotation(f"{name}.{key}"))
            raise ConfigError(f"{name}.{key} must be {expected}, got {value!r}")
    if name == "env" and "id" not in values:
        raise ConfigError("env.id is missing: set it to an environment of mlrl list")
    return SECTIONS[name](**values)

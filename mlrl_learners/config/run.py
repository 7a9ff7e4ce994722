"""The configuration of a run: read from YAML, overridden by `--key value`, checked, written back.

Every key is a field of a frozen dataclass; jsonargparse checks the types. Only the two `options`
mappings are open: environments and learners know their own options, and check them.

jsonargparse and PyYAML come with the extra `learners` and are imported when a file is read.
"""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_type_hints

from mlrl_learners.config.options import accepts, describe_type
from mlrl_learners.config.overrides import parse_values, split_overrides
from mlrl_learners.config.yaml import dump_yaml, parse_value, parse_yaml
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.types import Branching, JointMode, RolloutConfig

__all__ = [
    "EnvConfig",
    "LearnerConfig",
    "LoggingConfig",
    "RolloutOverrides",
    "RunConfig",
    "TrainConfig",
    "from_mapping",
    "known_keys",
    "load_config",
    "presets",
    "save_config",
    "to_mapping",
]

PRESETS = Path(__file__).parents[1] / "presets"


@dataclass(frozen=True)
class EnvConfig:
    """Which environment the agents play in.

    Attributes:
        id: One of `mlrl list`, or any environment registered with PettingZoo.
        options: Its options, such as `split`, `max_turns`, `feedback` or `reward`.
    """

    id: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LearnerConfig:
    """Which learner, and what its agents start from.

    Attributes:
        name: One of `mlrl list`.
        model: A model's name, folder or hub id for all agents, or a mapping of each agent to its
            own; left out for learners without models.
        options: The learner's options, such as `group_size` or `lr`.
    """

    name: str = "magrpo"
    model: str | dict[str, str] | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RolloutOverrides:
    """How episodes are walked, where that differs from what the learner asks for.

    Attributes:
        num_samples: Completions an agent at each node, at least 1.
        joint_mode: `aligned` plays the j-th answers together, `cross` every combination.
        branching: `tree` goes on from every joint action, `chain` from one drawn at random.
    """

    num_samples: int | None = None
    joint_mode: JointMode | None = None
    branching: Branching | None = None

    def apply(self, asked: RolloutConfig) -> RolloutConfig:
        """Return what the learner asked for, with what is set here instead."""
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(asked, **chosen)


@dataclass(frozen=True)
class TrainConfig:
    """How long to train, and how often to save and evaluate.

    Attributes:
        iterations: Rollout-and-update rounds, at least 1.
        tasks_per_iteration: Tasks played in each of them, at least 1.
        seed: Decides the order of the tasks and everything that is sampled.
        checkpoint_every: Iterations between checkpoints, at least 1.
        keep_checkpoints: How many of the newest checkpoints stay on the disk, at least 1.
        eval_every: Iterations between evaluations; 0 for none.
        eval_tasks: Tasks of an evaluation, at least 1; null for the whole split.
        eval_samples: Episodes of each task in an evaluation, at least 1.
        eval_options: Options of the evaluation's environment that differ from `env.options`.
    """

    iterations: int = 100
    tasks_per_iteration: int = 4
    seed: int = 0
    checkpoint_every: int = 1
    keep_checkpoints: int = 2
    eval_every: int = 0
    eval_tasks: int | None = None
    eval_samples: int = 1
    eval_options: dict[str, Any] = field(default_factory=lambda: {"split": "eval"})

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range.
        """
        for name, value in vars(self).items():
            low = 0 if name in ("seed", "eval_every") else 1
            if isinstance(value, int) and value < low:
                raise ConfigError(f"train.{name} must be at least {low}, got {value}")


@dataclass(frozen=True)
class LoggingConfig:
    """Where metrics go besides the JSON lines of the run directory.

    Attributes:
        wandb: `off`, `offline` (kept in the run directory) or `online`.
        wandb_project: Weights & Biases project.
        wandb_name: Name of the run there; null for the run directory's.
        tensorboard: Whether to write TensorBoard's event files into `run_dir/tensorboard`.
        token_ids: Whether `episodes.jsonl` keeps what models read and sampled token by token, too.
    """

    wandb: Literal["off", "offline", "online"] = "off"
    wandb_project: str = "mlrl"
    wandb_name: str | None = None
    tensorboard: bool = False
    token_ids: bool = False


@dataclass(frozen=True)
class RunConfig:
    """Everything a training run is made of.

    Attributes:
        env: Which environment the agents play in.
        learner: Which learner, and what its agents start from.
        rollout: How episodes are walked.
        train: How long to train.
        logging: Where metrics go.
    """

    env: EnvConfig
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    rollout: RolloutOverrides = field(default_factory=RolloutOverrides)
    train: TrainConfig = field(default_factory=TrainConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)


_SECTIONS: Mapping[str, type] = {
    "env": EnvConfig,
    "learner": LearnerConfig,
    "rollout": RolloutOverrides,
    "train": TrainConfig,
    "logging": LoggingConfig,
}
_OPEN = frozenset({"env.options", "learner.options", "learner.model", "train.eval_options"})
_SHORTHAND = ("env", "learner")
"""Sections where `--section.name` means `--section.options.name` unless it is a key."""


def known_keys() -> list[str]:
    """Return every key of a configuration, dotted, in order."""
    return [f"{section}.{name}" for section in _SECTIONS for name in _names(section)]


def presets() -> dict[str, str]:
    """Return the names of the presets, each with the first line of its comment."""
    lines = {
        path.stem: path.read_text("utf-8").split("\n", 1)[0] for path in PRESETS.glob("*.yaml")
    }
    return {name: line.lstrip("# ") for name, line in sorted(lines.items())}


def load_config(source: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a configuration.

    Args:
        source: Name of a preset, or path of a YAML file.
        overrides: Words of a command line, `["--train.iterations", "3"]`, or with `=`.
            `--env.split eval` and `--learner.group_size 8` stand for the `options` of those.

    Raises:
        UnknownNameError: If there is no such preset, file or key.
        ConfigError: If a value has the wrong type or is outside its range, the file is no YAML,
            or jsonargparse is missing.
    """
    path = _find(source)
    raw = parse_yaml(path.read_text("utf-8"), str(path))
    return from_mapping(raw, overrides)


def from_mapping(raw: object, overrides: Sequence[str] = ()) -> RunConfig:
    """Check a mapping of sections; see `load_config` for `overrides` and errors."""
    mapping = _checked_sections(raw)
    closed = {}
    for key, text in split_overrides(overrides):
        field_key, rest = _resolve(key)
        if field_key in _OPEN:
            _set(mapping, [*field_key.split("."), *rest], parse_value(text, f"--{key}"))
        else:
            closed[field_key] = text
    for key, value in parse_values(closed, {key: _annotation(key) for key in closed}).items():
        _set(mapping, key.split("."), value)
    return RunConfig(**{name: _section(name, mapping.get(name, {})) for name in _SECTIONS})


def to_mapping(config: RunConfig) -> dict[str, Any]:
    """Return a configuration as nested plain dicts, every key written out."""
    return dataclasses.asdict(config)


def save_config(config: RunConfig, path: Path) -> None:
    """Write a configuration so that `load_config` returns an equal one."""
    path.write_text(dump_yaml(to_mapping(config)), "utf-8")


def _names(section: str) -> list[str]:
    return [item.name for item in dataclasses.fields(_SECTIONS[section])]


def _find(source: str | Path) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or path.parent != Path():
        beside = [str(other) for other in path.parent.glob("*.y*ml")]
        raise unknown_name("configuration file", str(source), beside)
    if str(source) not in presets():
        raise unknown_name("preset", str(source), presets())
    return PRESETS / f"{source}.yaml"


def _checked_sections(raw: object) -> dict[str, dict[str, Any]]:
    """Copy the mapping two levels deep; refuse keys that nobody reads."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"a configuration is a mapping of {', '.join(_SECTIONS)}, got {raw!r}")
    sections: dict[str, dict[str, Any]] = {}
    for section, values in raw.items():
        if section not in _SECTIONS:
            raise unknown_name("key", section, _SECTIONS)
        if not isinstance(values, Mapping | None):
            raise ConfigError(f"{section} must be a mapping of keys to values, got {values!r}")
        for name in values or {}:
            if name not in _names(section):
                raise unknown_name("key", f"{section}.{name}", known_keys())
        sections[section] = dict(values or {})
    return sections


def _resolve(key: str) -> tuple[str, list[str]]:
    """Split a dotted key into a field and the path inside of it."""
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
    return get_type_hints(_SECTIONS[section])[name]


def _section(name: str, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of five types
    """Build a section from checked names and unchecked values."""
    for key, value in values.items():
        if not accepts(_annotation(f"{name}.{key}"), value):
            expected = describe_type(_annotation(f"{name}.{key}"))
            raise ConfigError(f"{name}.{key} must be {expected}, got {value!r}")
    if name == "env" and "id" not in values:
        raise ConfigError("env.id is missing: name an environment, mlrl list shows them all")
    return _SECTIONS[name](**values)

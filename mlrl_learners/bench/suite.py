"""Suites of benchmarks: environments, tasks, budgets and seeds, read from YAML.

Built-in suites are found by name, others by path. Names and types are checked here, options of an
environment by the environment itself, both before any episode is played.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.errors import MlrlError, UnknownNameError
from mlrl_envs.workflows import with_graph
from mlrl_learners.config.env import DEFAULT_SPLIT, evaluation_options
from mlrl_learners.config.options import check_options
from mlrl_learners.config.yaml import read_yaml
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.seeding import MOST_SEED

__all__ = [
    "Budget",
    "Entry",
    "Suite",
    "env_options",
    "has_common_scale",
    "load_suite",
    "suite_files",
    "suite_of",
]

_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "suites", _HERE.parent.parent / "benchmarks" / "suites")
_NAME = re.compile(r"[\w.:+-]+")


@dataclass(frozen=True)
class Budget:
    """Budget of an entry, the same for every actor.

    Attributes:
        turns: Turns per episode, at least 1; None for environments that do not accept `max_turns`.
        tokens: Maximum length of an answer in tokens, at least 1.
        samples: Episodes per task and seed, at least 1.
    """

    turns: int | None = 1
    tokens: int = 128
    samples: int = 1

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is not an int, or below 1.
        """
        check_options(dataclasses.asdict(self), Budget)
        for name, number in dataclasses.asdict(self).items():
            if number is not None and number < 1:
                raise ConfigError(f"{name} must be at least 1, got {number}")


@dataclass(frozen=True)
class Entry:
    """One environment of a suite.

    Attributes:
        env: Id of the environment, including its version.
        split: Split of its data; the default is left out for environments without splits.
        tasks: Number of tasks, counted from the first; None for the whole split.
        options: Further arguments of `mlrl_envs.make`.
        budget: Budget of every actor.
        name: Name in results, unique in the suite; by default `ENV:SPLIT`.
        show_prompts: Whether published transcripts include observations. The licence of the data
            must allow it.
    """

    env: str
    split: str = DEFAULT_SPLIT
    tasks: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    name: str = ""
    show_prompts: bool = False

    def __post_init__(self) -> None:
        """Check ranges and fill in the name.

        Raises:
            ConfigError: If `tasks` is below 1, or `options` contains the split or `max_turns`.
        """
        if self.tasks is not None and self.tasks < 1:
            raise ConfigError(f"tasks must be at least 1, got {self.tasks}")
        for name, place in (("split", "split"), ("max_turns", "budget.turns")):
            if name in self.options:
                raise ConfigError(f"options.{name} is set by {place}; remove it there")
        object.__setattr__(self, "name", self.name or f"{self.env}:{self.split}")

    @property
    def env_options(self) -> dict[str, Any]:
        """All arguments of `mlrl_envs.make`, except the id."""
        return env_options(self.env, self.options, self.split, self.budget.turns)

    def make_env(self) -> Any:  # noqa: ANN401 - any PettingZoo parallel environment
        """Make the environment.

        Raises:
            ConfigError: If the environment does not accept an option of the entry.
            MlrlError: As `mlrl_envs.make`.
        """
        try:
            return mlrl_envs.make(self.env, **self.env_options)
        except (ValueError, LookupError, TypeError) as error:
            if not isinstance(error, MlrlError | TypeError):
                raise
            fix = "; set budget.turns to null there" if "'max_turns'" in str(error) else ""
            raise ConfigError(f"entry {self.name}: {error}{fix}") from error


@dataclass(frozen=True)
class Suite:
    """Entries that are played and reported together.

    Attributes:
        name: Name without spaces.
        version: Increased with every change that affects scores; results of different versions
            are not compared.
        summary: One-line description.
        seeds: Every entry is played once per seed.
        entries: In the order of the report.
        common_scale: Whether the returns of all entries have one scale. Otherwise results and
            leaderboard have no mean return over entries.
    """

    name: str
    version: int
    summary: str
    seeds: tuple[int, ...]
    entries: tuple[Entry, ...]
    common_scale: bool = True

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If the name is not one word, a number is out of range, or seeds or entries
                are empty or repeated.
        """
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"name must be one word, got {self.name!r}")
        if self.version < 0:
            raise ConfigError(f"version must be at least 0, got {self.version}")
        for kind, values in (("seeds", self.seeds), ("entries", self.entries)):
            if not values:
                raise ConfigError(f"{kind} must not be empty")
        for seed in self.seeds:
            if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MOST_SEED:
                raise ConfigError(f"seeds must be ints from 0 to 2**63 - 1, got {seed!r}")
        for kind, keys in (("seed", self.seeds), ("entry", [each.name for each in self.entries])):
            if doubled := [key for key in keys if list(keys).count(key) > 1]:
                raise ConfigError(f"{kind} {doubled[0]!r} appears twice")

    @property
    def hash(self) -> str:
        """SHA-256 of the whole suite, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return the suite as JSON values that `suite_of` accepts."""
        value = dataclasses.asdict(self)
        if self.common_scale:
            del value["common_scale"]  # hashes of results that were stored without it stay the same
        return {**value, "seeds": list(self.seeds), "entries": list(value["entries"])}

    def only(self, names: Sequence[str]) -> "Suite":
        """Return the suite with only some of its entries.

        Args:
            names: Names or environment ids of the entries to keep.

        Raises:
            UnknownNameError: If a name matches no entry.
        """
        known = {key for each in self.entries for key in (each.name, each.env)}
        for name in names:
            if name not in known:
                raise unknown_name("entry", name, known)
        kept = tuple(each for each in self.entries if {each.name, each.env} & set(names))
        return dataclasses.replace(self, entries=kept)


def env_options(
    env_id: str, options: Mapping[str, Any], split: str, turns: int | None
) -> dict[str, Any]:
    """Return all arguments of `mlrl_envs.make` for an entry, except the id."""
    limit = {} if turns is None else {"max_turns": turns}
    return {**evaluation_options(env_id, {**options, "split": split}), **limit}


def has_common_scale(suite: Mapping[str, Any]) -> bool:
    """Return `common_scale` of a suite that a result holds."""
    return bool(suite.get("common_scale", True))


def suite_files() -> dict[str, Path]:
    """Return the built-in suites by name."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def load_suite(name_or_path: str) -> Suite:
    """Read a suite, with the graphs of workflows in place of their files.

    Args:
        name_or_path: Name of a built-in suite, or path of a YAML file.

    Raises:
        UnknownNameError: If there is no such suite, or a key is unknown.
        ConfigError: If the file is not YAML, or a value has another type or is out of range.
        InvalidArgumentError: If the file of a workflow cannot be read, or holds no mapping.
    """
    known = suite_files()
    path = known.get(name_or_path, Path(name_or_path))
    if not path.is_file():
        if path.suffix in (".yaml", ".yml"):
            raise ConfigError(f"no suite at {name_or_path!r}")
        raise unknown_name("suite", name_or_path, known)
    suite = suite_of(read_yaml(path), path.name)
    entries = (dataclasses.replace(e, options=with_graph(e.options)) for e in suite.entries)
    return dataclasses.replace(suite, entries=tuple(entries))


def suite_of(value: object, source: str = "suite") -> Suite:
    """Make a suite of JSON values, as its file holds them.

    Args:
        value: A mapping. A `budget` at its top level is the default of all entries.
        source: Name of the file, for messages.

    Raises:
        UnknownNameError: If a key or an environment is unknown.
        ConfigError: If a key is missing, or a value has another type or is out of range.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{source} must be a mapping, got {value!r}")
    rest = {key: inner for key, inner in value.items() if key != "budget"}
    common = value.get("budget", {})
    if isinstance(rest.get("seeds"), list):
        rest["seeds"] = tuple(rest["seeds"])
    if isinstance(rest.get("entries"), list):
        rest["entries"] = tuple(
            _entry(each, common, f"{source}: entry {number}")
            for number, each in enumerate(rest["entries"], start=1)
        )
    suite: Suite = _build(Suite, rest, source)
    return suite


def _entry(value: object, common: object, source: str) -> Entry:
    if not isinstance(value, Mapping) or not isinstance(common, Mapping):
        raise ConfigError(f"{source} and its budget must be mappings, got {value!r}, {common!r}")
    own = value.get("budget", {})
    if not isinstance(own, Mapping):
        raise ConfigError(f"{source}: budget must be a mapping, got {own!r}")
    budget = _build(Budget, {**common, **own}, f"{source}: budget")
    entry: Entry = _build(Entry, {**value, "budget": budget}, source)
    try:
        mlrl_envs.registry[entry.env]
    except UnknownNameError as error:
        raise ConfigError(f"{source}: {error}") from error
    return entry


def _build(kind: Any, values: Mapping[str, Any], source: str) -> Any:  # noqa: ANN401 - a dataclass
    required = [
        each.name
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]
    try:
        check_options(values, kind)
        for name in required:
            if name not in values:
                raise ConfigError(f"{name} is missing")
        return kind(**values)
    except MlrlError as error:
        raise ConfigError(f"{source}: {error}") from error

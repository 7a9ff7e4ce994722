"""Result files of the leaderboard, and what must be equal for them to stand side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlrl_learners.bench.results import read_result
from mlrl_learners.bench.suite import has_common_scale
from mlrl_learners.errors import ConfigError

__all__ = ["ResultSource", "label_of", "read_sources"]

ALIKE = {
    "env": "env",
    "split": "split",
    "budget": "budget",
    "options": "options",
    "data": "data",
    "planned": "planned number of episodes",
}
"""Keys of an entry that are equal in all results of a suite, with their names in messages."""


@dataclass(frozen=True, eq=False)
class ResultSource:
    """A result file.

    Attributes:
        path: Path relative to the folder of results, with slashes.
        file: Absolute or working-directory path.
        result: Content.
    """

    path: str
    file: Path
    result: Mapping[str, Any]

    @property
    def actor(self) -> str:
        """Name of the actor."""
        return str(self.result["actor"]["name"])

    @property
    def slug(self) -> str:
        """The path with `--` for slashes, for names of files."""
        return self.path.removesuffix(".json").replace("/", "--")


def read_sources(folder: Path) -> list[ResultSource]:
    """Read every result below a folder, in the order of their paths.

    Raises:
        ConfigError: If there is none, a file is not a result, two results of a suite have the same
            actor, an entry has several scorers, or two results of a suite differ in its seeds, its
            scale of returns, or in the data, budget or number of episodes of an entry.
    """
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not files:
        raise ConfigError(f"no results below {str(folder)!r}: mlrl bench run --out writes one")
    sources = [ResultSource(f.relative_to(folder).as_posix(), f, read_result(f)) for f in files]
    seen: dict[tuple[str, str, str], str] = {}
    for source in sources:
        _check_scorers(source)
        suite = source.result["suite"]
        key = (label_of(suite), suite["hash"], source.actor)
        if key in seen:
            raise ConfigError(f"{source.path} and {seen[key]} are of one actor, {key[2]}: name one")
        seen[key] = source.path
    _check_suites(sources)
    _check_entries(sources)
    return sources


def label_of(suite: Mapping[str, Any]) -> str:
    """Return name and version of a suite."""
    return f"{suite['name']} v{suite['version']}"


def _check_scorers(source: ResultSource) -> None:
    """Raise an error if the rewards of an entry come from several scorers."""
    for entry in source.result["entries"]:
        if len(entry["scorers"]) > 1:
            raise ConfigError(
                f"{source.path}, {entry['name']}: its episodes were scored by "
                f"{len(entry['scorers'])} scorers; mlrl rescore --write scores all by one"
            )


def _check_suites(sources: Sequence[ResultSource]) -> None:
    """Raise an error if two results of a suite differ in its seeds or its scale of returns."""
    first: dict[str, ResultSource] = {}
    for source in sources:
        label = label_of(source.result["suite"])
        known = first.setdefault(label, source)
        seeds, others = (each.result["suite"]["seeds"] for each in (source, known))
        if seeds != others:
            raise ConfigError(
                f"{label}: {source.path} has other seeds than {known.path}, {seeds} and {others}; "
                "another suite needs another name or version"
            )
        if has_common_scale(source.result["suite"]) != has_common_scale(known.result["suite"]):
            raise ConfigError(
                f"{label}: {source.path} has another common_scale than {known.path}; another suite "
                "needs another name or version"
            )


def _check_entries(sources: Sequence[ResultSource]) -> None:
    """Raise an error if two results of a suite did not play an entry alike."""
    first: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for source in sources:
        for entry in source.result["entries"]:
            label = label_of(source.result["suite"])
            path, known = first.setdefault((label, entry["name"]), (source.path, entry))
            for key, name in ALIKE.items():
                if entry[key] != known[key]:
                    raise ConfigError(
                        f"{label}, {entry['name']}: {source.path} has another {name} than {path}; "
                        "another suite needs another name or version"
                    )

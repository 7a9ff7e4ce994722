"""Rows of the leaderboard, grouped by suite and entry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlrl_learners.bench.results import read_result
from mlrl_learners.errors import ConfigError

__all__ = [
    "WHOLE",
    "LeaderboardGroup",
    "LeaderboardRow",
    "ResultSource",
    "groups_of",
    "read_sources",
]

WHOLE = "whole suite"
Interval = tuple[float, float]


@dataclass(frozen=True)
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
    def slug(self) -> str:
        """The path with `--` for slashes, for names of files."""
        return self.path.removesuffix(".json").replace("/", "--")


@dataclass(frozen=True)
class LeaderboardRow:
    """One result in one group.

    Attributes:
        actor: Name of the actor.
        detail: Its way of playing, training and note.
        mean: Mean return.
        interval: 95 % interval of the mean; None for a single task.
        iqm: Interquartile mean over tasks and seeds.
        iqm_interval: 95 % interval of the interquartile mean; None for a single task.
        solved: Share of episodes that solve their task.
        episodes: Number of episodes.
        tokens: Mean number of tokens written per episode; None if the actor does not count them.
        read: Mean number of tokens read per episode; None if the actor does not count them.
        seconds: Mean wall-clock time per episode.
        slug: Slug of its source.
        path: Path of its source.
        commit: First eight digits of the commit that played it.
        is_complete: Whether no episode is missing.
        measures: Measures of a game by name.
        is_trained: Whether the actor comes from training runs.
        bound: `reference` or `random`, between which others are judged; empty for any other actor.
    """

    actor: str
    detail: str
    mean: float
    interval: Interval | None
    iqm: float
    iqm_interval: Interval | None
    solved: float
    episodes: int
    tokens: float | None
    read: float | None
    seconds: float
    slug: str
    path: str
    commit: str
    is_complete: bool
    measures: Mapping[str, float] = field(default_factory=dict)
    is_trained: bool = False
    bound: str = ""


@dataclass(frozen=True)
class LeaderboardGroup:
    """Rows that are compared with each other.

    Attributes:
        suite: Name and version of the suite.
        summary: Its one-line description.
        entry: Name of the entry, or `WHOLE`.
        note: Budget and seeds.
        rows: In descending order of the mean.
        absent: Actors without a row, each with the reason.
        is_main: Whether the page shows it at first: a whole suite, or an environment with a trained
            actor that did not play the whole suite.
    """

    suite: str
    summary: str
    entry: str
    note: str
    rows: tuple[LeaderboardRow, ...]
    absent: tuple[str, ...] = field(default=())
    is_main: bool = True

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures that some row has."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.measures))

    @property
    def slug(self) -> str:
        """Suite and entry joined by hyphens."""
        words = "".join(c if c.isalnum() else "-" for c in f"{self.suite} {self.entry}")
        return "-".join(filter(None, words.split("-")))


def read_sources(folder: Path) -> list[ResultSource]:
    """Read every result below a folder, in the order of their paths.

    Raises:
        ConfigError: If there is none, a file is not a result, two results of a suite have the same
            actor, or two results of a suite differ in the data or budget of an entry.
    """
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not files:
        raise ConfigError(f"no results below {str(folder)!r}: mlrl bench run --out writes one")
    sources = [ResultSource(f.relative_to(folder).as_posix(), f, read_result(f)) for f in files]
    seen: dict[tuple[str, str, str], str] = {}
    for source in sources:
        suite = source.result["suite"]
        key = (_label(suite), suite["hash"], source.result["actor"]["name"])
        if key in seen:
            raise ConfigError(f"{source.path} and {seen[key]} are of one actor, {key[2]}: name one")
        seen[key] = source.path
    _check_alike(sources)
    return sources


def _check_alike(sources: Sequence[ResultSource]) -> None:
    """Raise an error if two results of a suite differ in the data or budget of an entry."""
    first: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for source in sources:
        for entry in source.result["entries"]:
            label = _label(source.result["suite"])
            path, known = first.setdefault((label, entry["name"]), (source.path, entry))
            for key in ("env", "split", "budget", "options", "data"):
                if entry[key] != known[key]:
                    raise ConfigError(
                        f"{label}, {entry['name']}: {source.path} has another {key} than {path}; "
                        "another suite needs another name or version"
                    )


def groups_of(sources: Sequence[ResultSource]) -> list[LeaderboardGroup]:
    """Return every group that has a row, ordered by the name of the suite."""
    suites: dict[str, list[ResultSource]] = {}
    for source in sources:
        suites.setdefault(_label(source.result["suite"]), []).append(source)
    return [
        group for label in sorted(suites) for group in _groups(label, suites[label]) if group.rows
    ]


def _groups(label: str, sources: Sequence[ResultSource]) -> list[LeaderboardGroup]:
    entries: dict[str, Mapping[str, Any]] = {}  # name -> the result with the most tasks
    for source in sorted(sources, key=lambda each: -len(each.result["entries"])):
        for entry in source.result["entries"]:
            known = entries.setdefault(entry["name"], entry)
            if len(entry["returns"]) > len(known["returns"]):
                entries[entry["name"]] = entry
    summary = sources[0].result["suite"]["summary"]
    seeds = max(len(source.result["suite"]["seeds"]) for source in sources)
    scored = {e["name"] for s in sources for e in s.result["entries"] if e["episodes"]}
    whole = [s for s in sources if scored == _scored(s)]
    groups: list[LeaderboardGroup] = []
    shown: set[str] = set()  # paths of the results in the table of the whole suite
    if len(entries) > 1:
        rows = [_row(source, source.result["overall"]) for source in whole]
        shown = {row.path for row in rows}
        absent = [
            f"{s.result['actor']['name']}: {len(_scored(s))} of {len(scored)} environments"
            for s in sources
            if s not in whole and _scored(s)
        ]
        note = f"{len(scored)} environments of the same weight · {_count(seeds, 'seed')}"
        groups.append(
            LeaderboardGroup(label, summary, WHOLE, note, _best_first(rows), tuple(sorted(absent)))
        )
    for name, entry in entries.items():
        found = [(s, e) for s in sources for e in s.result["entries"] if e["name"] == name]
        rows = [_row(source, each) for source, each in found if each["episodes"]]
        absent = sorted(
            f"{s.result['actor']['name']}: {_why_absent(e)}" for s, e in found if not e["episodes"]
        )
        note = f"{_budget(entry)} · {_count(seeds, 'seed')}"
        is_main = not shown or any(row.is_trained and row.path not in shown for row in rows)
        groups.append(
            LeaderboardGroup(label, summary, name, note, _best_first(rows), tuple(absent), is_main)
        )
    return groups


def _why_absent(entry: Mapping[str, Any]) -> str:
    if entry["missing"]:
        return f"{_count(entry['missing'], 'episode')} missing"
    return "the tasks have no reference"


def _scored(source: ResultSource) -> set[str]:
    return {entry["name"] for entry in source.result["entries"] if entry["episodes"]}


def _best_first(rows: Sequence[LeaderboardRow]) -> tuple[LeaderboardRow, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.mean, row.actor, row.path)))


def _row(source: ResultSource, figures: Mapping[str, Any]) -> LeaderboardRow:
    result, played = source.result, figures["episodes"]
    is_counted = figures["tokens"] + figures["prompt_tokens"] > 0
    return LeaderboardRow(
        actor=result["actor"]["name"],
        detail=_detail(result["actor"]),
        mean=figures["mean"],
        interval=_interval(figures["interval"]),
        iqm=figures["iqm"],
        iqm_interval=_interval(figures["iqm_interval"]),
        solved=figures["solved_rate"],
        episodes=played,
        tokens=figures["tokens"] / played if is_counted else None,
        read=figures["prompt_tokens"] / played if is_counted else None,
        seconds=figures["seconds"] / played,
        slug=source.slug,
        path=source.path,
        commit=str(result["provenance"].get("commit") or "")[:8],
        is_complete=result["complete"],
        measures=dict(figures.get("measures", {"figures": {}})["figures"]),
        is_trained=bool(result["actor"].get("trained")),
        bound=_bound(result["actor"]),
    )


def _bound(actor: Mapping[str, Any]) -> str:
    base = str(actor["base"])
    return base if actor["way"] == "plain" and base in ("reference", "random") else ""


def _interval(value: Sequence[float] | None) -> Interval | None:
    return None if value is None else (value[0], value[1])


def _detail(actor: Mapping[str, Any]) -> str:
    parts = [actor["base"] if actor["way"] == "plain" else f"{actor['way']} of {actor['base']}"]
    trained = actor.get("trained", [])
    if trained:
        first = trained[0]
        parts = [str(first["model"])]
        runs = _count(len(trained), "run")
        parts.append(
            f"trained by {first['learner']} on {first['env']} "
            f"({first['options'].get('split', 'train')}), "
            f"{_count(first['iterations'], 'iteration')} of "
            f"{_count(first['tasks_per_iteration'], 'task')}, {runs}"
        )
    if actor.get("note"):
        parts.append(str(actor["note"]))
    return " · ".join(parts)


def _budget(entry: Mapping[str, Any]) -> str:
    budget = entry["budget"]
    tasks = len(entry["returns"])
    counted = [_count(tasks, "task")] if tasks else []
    if budget["samples"] > 1:
        counted.append(f"{budget['samples']} samples")
    if budget["turns"]:
        counted.append(_count(budget["turns"], "turn"))
    return " · ".join([*counted, f"{budget['tokens']} tokens an answer"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _label(suite: Mapping[str, Any]) -> str:
    return f"{suite['name']} v{suite['version']}"

"""From result files to groups of rows: a group is a suite as a whole, or one entry of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlrl_learners.bench.results import read_result
from mlrl_learners.errors import ConfigError

__all__ = ["WHOLE", "Group", "Row", "Source", "groups_of", "read_sources"]

WHOLE = "whole suite"
Interval = tuple[float, float]


@dataclass(frozen=True)
class Source:
    """A result file.

    Attributes:
        path: Below the folder of results, with slashes.
        file: Where it is.
        result: What it holds.
    """

    path: str
    file: Path
    result: Mapping[str, Any]

    @property
    def slug(self) -> str:
        """The path as one word, for names of files."""
        return self.path.removesuffix(".json").replace("/", "--")


@dataclass(frozen=True)
class Row:
    """One result in one group.

    Attributes:
        actor: What it is called.
        detail: How it plays, what it was trained on, and its note.
        mean: Mean return.
        interval: 95 % interval of it; None for a single task.
        iqm: Interquartile mean over tasks and seeds.
        iqm_interval: 95 % interval of it; None for a single task.
        solved: Share of episodes that solve their task.
        episodes: How many were played.
        tokens: Written in an episode, on average; None where the actor does not count.
        read: Read in an episode, on average; None likewise.
        seconds: That an episode took, on average.
        slug: Of its source.
        path: Of its source.
        commit: Of the code that played it, the first eight digits.
        is_complete: Whether every episode is there.
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


@dataclass(frozen=True)
class Group:
    """Rows that are compared.

    Attributes:
        suite: Name and version of the suite.
        summary: One line about it.
        entry: Name of the entry, or `WHOLE`.
        note: Budget and seeds.
        rows: Best mean first.
        absent: Actors that have nothing to show here, and why.
    """

    suite: str
    summary: str
    entry: str
    note: str
    rows: tuple[Row, ...]
    absent: tuple[str, ...] = field(default=())

    @property
    def slug(self) -> str:
        """Suite and entry as one word."""
        words = "".join(c if c.isalnum() else "-" for c in f"{self.suite} {self.entry}")
        return "-".join(filter(None, words.split("-")))


def read_sources(folder: Path) -> list[Source]:
    """Read every result below a folder, in the order of their paths.

    Raises:
        ConfigError: If there is none, one is no result, two are the same actor's on one suite, or
            two of one suite have played an entry on other data or within other budgets.
    """
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not files:
        raise ConfigError(f"no results below {str(folder)!r}: mlrl bench run --out writes one")
    sources = [Source(f.relative_to(folder).as_posix(), f, read_result(f)) for f in files]
    seen: dict[tuple[str, str, str], str] = {}
    for source in sources:
        suite = source.result["suite"]
        key = (_label(suite), suite["hash"], source.result["actor"]["name"])
        if key in seen:
            raise ConfigError(f"{source.path} and {seen[key]} are of one actor, {key[2]}: name one")
        seen[key] = source.path
    _check_alike(sources)
    return sources


def _check_alike(sources: Sequence[Source]) -> None:
    """Refuse to put side by side what was not played alike."""
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


def groups_of(sources: Sequence[Source]) -> list[Group]:
    """Return every group that has a row, suites in the order of their names."""
    suites: dict[str, list[Source]] = {}
    for source in sources:
        suites.setdefault(_label(source.result["suite"]), []).append(source)
    return [
        group for label in sorted(suites) for group in _groups(label, suites[label]) if group.rows
    ]


def _groups(label: str, sources: Sequence[Source]) -> list[Group]:
    entries: dict[str, Mapping[str, Any]] = {}  # for each, the one with the most tasks
    for source in sorted(sources, key=lambda each: -len(each.result["entries"])):
        for entry in source.result["entries"]:
            known = entries.setdefault(entry["name"], entry)
            if len(entry["returns"]) > len(known["returns"]):
                entries[entry["name"]] = entry
    summary = sources[0].result["suite"]["summary"]
    seeds = max(len(source.result["suite"]["seeds"]) for source in sources)
    scored = {e["name"] for s in sources for e in s.result["entries"] if e["episodes"]}
    whole = [s for s in sources if scored == _scored(s)]
    groups = []
    if len(entries) > 1:
        rows = [_row(source, source.result["overall"]) for source in whole]
        absent = [
            f"{s.result['actor']['name']}: {len(_scored(s))} of {len(scored)} environments"
            for s in sources
            if s not in whole and _scored(s)
        ]
        note = f"{len(scored)} environments of the same weight · {_count(seeds, 'seed')}"
        groups.append(Group(label, summary, WHOLE, note, _best_first(rows), tuple(sorted(absent))))
    for name, entry in entries.items():
        found = [(s, e) for s in sources for e in s.result["entries"] if e["name"] == name]
        rows = [_row(source, each) for source, each in found if each["episodes"]]
        absent = sorted(
            f"{s.result['actor']['name']}: {_why_absent(e)}" for s, e in found if not e["episodes"]
        )
        note = f"{_budget(entry)} · {_count(seeds, 'seed')}"
        groups.append(Group(label, summary, name, note, _best_first(rows), tuple(absent)))
    return groups


def _why_absent(entry: Mapping[str, Any]) -> str:
    if entry["missing"]:
        return f"{_count(entry['missing'], 'episode')} missing"
    return "the tasks have no reference"


def _scored(source: Source) -> set[str]:
    return {entry["name"] for entry in source.result["entries"] if entry["episodes"]}


def _best_first(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.mean, row.actor, row.path)))


def _row(source: Source, figures: Mapping[str, Any]) -> Row:
    result, played = source.result, figures["episodes"]
    is_counted = figures["tokens"] + figures["prompt_tokens"] > 0  # nobody reads and writes nothing
    return Row(
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
    )


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
            f"{first['iterations']} iterations of {first['tasks_per_iteration']} tasks, {runs}"
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

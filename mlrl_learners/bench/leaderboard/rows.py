"""Rows of the leaderboard, grouped by suite and entry.

A group has one row per actor: of several results the fullest, the one with the most episodes.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlrl_learners.bench.leaderboard.actor_details import (
    bound_of,
    counted,
    detail_of,
    runs_of,
)
from mlrl_learners.bench.leaderboard.sources import ResultSource, label_of
from mlrl_learners.bench.suite import has_common_scale

__all__ = ["WHOLE", "LeaderboardGroup", "LeaderboardRow", "groups_of"]

WHOLE = "whole suite"
Interval = tuple[float, float]
Played = tuple[ResultSource, Mapping[str, Any]]
"""A result, and its figures of one group."""


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
        runs: Number of training runs that the actor comes from, on the environment of an entry.
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
    runs: int = 0
    bound: str = ""

    @property
    def is_trained(self) -> bool:
        """Whether the actor comes from training runs."""
        return self.runs > 0


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


def groups_of(sources: Sequence[ResultSource]) -> list[LeaderboardGroup]:
    """Return every group that has a row, ordered by the name of the suite."""
    suites: dict[str, list[ResultSource]] = {}
    for source in sources:
        suites.setdefault(label_of(source.result["suite"]), []).append(source)
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
    has_mean = has_common_scale(sources[0].result["suite"])
    whole = [_whole_group(label, sources)] if len(entries) > 1 and has_mean else []
    shown = {row.path for group in whole for row in group.rows}
    groups = [_entry_group(label, sources, entry) for entry in entries.values()]
    trained = {
        group.entry
        for group in groups
        if any(row.is_trained and row.path not in shown for row in group.rows)
    }
    shows_all = not shown and (has_mean or not trained)
    return whole + [
        dataclasses.replace(group, is_main=shows_all or group.entry in trained) for group in groups
    ]


def _whole_group(label: str, sources: Sequence[ResultSource]) -> LeaderboardGroup:
    """Return the rows of the actors that have played every environment."""
    scored = {e["name"] for s in sources for e in s.result["entries"] if e["episodes"]}
    whole = [s for s in sources if scored == _scored(s)]
    rows, absent = _rows([(source, source.result["overall"]) for source in whole])
    partial = {
        s: f"{len(_scored(s))} of {len(scored)} environments"
        for s in sources
        if s not in whole and _scored(s)
    }
    absent = tuple(sorted([*absent, *_absent(partial, rows)]))
    note = f"{len(scored)} environments of the same weight · {_seeds(sources)}"
    return LeaderboardGroup(label, _summary(sources), WHOLE, note, rows, absent)


def _entry_group(
    label: str, sources: Sequence[ResultSource], entry: Mapping[str, Any]
) -> LeaderboardGroup:
    """Return the rows of the actors that have played an entry."""
    name = entry["name"]
    found = [(s, e) for s in sources for e in s.result["entries"] if e["name"] == name]
    rows, absent = _rows([(source, each) for source, each in found if each["episodes"]])
    no_episode = {s: _why_absent(e) for s, e in found if not e["episodes"]}
    absent = tuple(sorted([*absent, *_absent(no_episode, rows)]))
    note = f"{_budget(entry)} · {_seeds(sources)}"
    return LeaderboardGroup(label, _summary(sources), name, note, rows, absent)


def _summary(sources: Sequence[ResultSource]) -> str:
    suite = sources[0].result["suite"]
    if has_common_scale(suite):
        return str(suite["summary"])
    return f"{suite['summary']} (no mean over environments, whose returns have different scales)"


def _seeds(sources: Sequence[ResultSource]) -> str:
    return counted(max(len(source.result["suite"]["seeds"]) for source in sources), "seed")


def _rows(played: Sequence[Played]) -> tuple[tuple[LeaderboardRow, ...], Sequence[str]]:
    """Return a row for the fullest result of each actor, the best first, and what is left out."""
    fullest: dict[str, Played] = {}
    for source, figures in sorted(played, key=_fullness, reverse=True):
        fullest.setdefault(source.actor, (source, figures))
    rows = [_row(source, figures) for source, figures in fullest.values()]
    less = [source for source, _ in played if source is not fullest[source.actor][0]]
    return _best_first(rows), [_left_out(source) for source in less]


def _fullness(played: Played) -> tuple[int, int, bool]:
    source, figures = played
    return figures["episodes"], len(source.result["entries"]), source.result["complete"]


def _absent(why: Mapping[ResultSource, str], rows: Sequence[LeaderboardRow]) -> list[str]:
    """Return a note for each result without a row."""
    there = {row.actor for row in rows}
    return [
        _left_out(source) if source.actor in there else f"{source.actor}: {reason}"
        for source, reason in why.items()
    ]


def _left_out(source: ResultSource) -> str:
    return f"{source.actor}: {source.path}, another result of it is fuller"


def _why_absent(entry: Mapping[str, Any]) -> str:
    if entry["missing"]:
        return f"{counted(entry['missing'], 'episode')} missing"
    return "the tasks have no reference"


def _scored(source: ResultSource) -> set[str]:
    return {entry["name"] for entry in source.result["entries"] if entry["episodes"]}


def _best_first(rows: Sequence[LeaderboardRow]) -> tuple[LeaderboardRow, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.mean, row.actor, row.path)))


def _row(source: ResultSource, figures: Mapping[str, Any]) -> LeaderboardRow:
    result, played = source.result, figures["episodes"]
    # The mean of a whole suite rests on no more runs than the mean of any entry.
    envs = [figures["env"]] if "env" in figures else [e["env"] for e in result["entries"]]
    is_counted = figures["tokens"] + figures["prompt_tokens"] > 0
    return LeaderboardRow(
        actor=source.actor,
        detail=detail_of(result["actor"], runs_of(result["actor"], *envs)),
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
        runs=min(len(runs_of(result["actor"], env)) for env in envs),
        bound=bound_of(result["actor"]),
    )


def _interval(value: Sequence[float] | None) -> Interval | None:
    return None if value is None else (value[0], value[1])


def _budget(entry: Mapping[str, Any]) -> str:
    budget = entry["budget"]
    tasks = len(entry["returns"])
    parts = [counted(tasks, "task")] if tasks else []
    if budget["samples"] > 1:
        parts.append(f"{budget['samples']} samples")
    if budget["turns"]:
        parts.append(counted(budget["turns"], "turn"))
    return " · ".join([*parts, f"{budget['tokens']} tokens an answer"])

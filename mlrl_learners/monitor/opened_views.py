"""Pages and texts of one episode: the reader, its exports, and its task in another run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_learners.monitor.index import EpisodeIndex, IndexEntry, Numbers
from mlrl_learners.monitor.library import Library, MonitoredRun
from mlrl_learners.monitor.lines import Finder
from mlrl_learners.monitor.page_request import (
    NotThereError,
    NotYetError,
    PageRequest,
    count_of,
    index_of,
    path_of,
    run_of,
)
from mlrl_learners.monitor.pages.compare import Compared, compare_page
from mlrl_learners.monitor.pages.episode import episode_page
from mlrl_learners.monitor.pages.episodes import PAGE
from mlrl_learners.monitor.pages.opened import OpenedEpisode
from mlrl_learners.monitor.query import Query
from mlrl_learners.report.chart_scales import return_text
from mlrl_learners.report.markdown import episode_markdown
from mlrl_learners.runs.stored import UNREADABLE, Record
from mlrl_learners.runs.summaries import levels, opponents_of, path_to, seed_of

__all__ = ["TEXTS", "compare", "opened_episode"]

_NEIGHBOUR_SECONDS = 0.4
_NEARBY = 6
_MOST_OTHERS = 100


@dataclass(frozen=True)
class _Found:
    run: MonitoredRun
    query: Query
    index: EpisodeIndex
    number: int
    record: Record


def opened_episode(library: Library, request: PageRequest) -> str:
    """Return the page of an episode."""
    found = _record(library, request)
    run, query, index, record = found.run, found.query, found.index, found.record
    number = found.number
    try:
        path = path_of(request.words.get("path", ""))
        numbers = index.select(query)
        place = next(iter((numbers == number).nonzero()[0].tolist()), None)
        if query.text and not path:
            path = path_to(record, Finder(query.text).is_in)
        opened = OpenedEpisode(
            run=run.name,
            query=query,
            entry=index.entry(number),
            seed=seed_of(record),
            opponents=opponents_of(record),
            levels=levels(record, path),
            page_start=_page_start(query, place, count_of(request.words.get("at", ""))),
            nearby=_nearby(index, query, numbers, place),
            others=_others(run, library.runs()),
            path=path,
            **_neighbours(index, query, numbers, place),
        )
    except UNREADABLE as error:
        raise NotThereError(f"This episode cannot be read: {error!r}") from error
    return episode_page(opened)


def compare(library: Library, request: PageRequest) -> str:
    """Return the page of a task in two runs, in the other one as it was last played."""
    found = _record(library, request)
    entry = found.index.entry(found.number)
    named = PageRequest({**request.words, "run": request.words.get("other", "")})
    other = run_of(library, named)
    index = index_of(other, found.query)
    same = index.last_of(entry.summary.task_id)
    record = None if same is None else index.read(same)
    if same is None or record is None:
        _check_read(index)
        raise NotThereError(
            f"{other.name} has no {found.query.source} episode of {entry.summary.task_id}."
        )
    path = path_of(request.words.get("path", ""))
    left = _side(found.run, found.query, entry, found.record, path)
    return compare_page(left, _side(other, found.query, index.entry(same), record, []))


def markdown(library: Library, request: PageRequest) -> str:
    """Return an episode as Markdown."""
    found = _record(library, request)
    entry, path = found.index.entry(found.number), path_of(request.words.get("path", ""))
    side = _side(found.run, found.query, entry, found.record, path)
    summary = side.entry.summary
    facts = [
        f"run {side.run}, iteration {side.entry.iteration}",
        f"return {return_text(summary.mean)}",
        f"{summary.solved_paths} of {summary.branches} paths solved",
    ]
    return episode_markdown(summary.task_id, facts, side.turns)


def raw(library: Library, request: PageRequest) -> str:
    """Return the stored record of an episode."""
    return json.dumps(_record(library, request).record, indent=1, ensure_ascii=False)


TEXTS = {"/markdown": (markdown, "text/markdown"), "/raw": (raw, "application/json")}
"""Path -> function that returns a text, and its media type."""


def _record(library: Library, request: PageRequest) -> _Found:
    run = run_of(library, request)
    query = Query.parse(request.words)
    index = index_of(run, query)
    number = index.number(request.words.get("key", ""))
    record = None if number is None else index.read(number)
    if number is None or record is None:
        _check_read(index)
        raise NotThereError(
            "This episode does not exist. A resumed run removes the episodes that it repeats."
        )
    return _Found(run, query, index, number, record)


def _check_read(index: EpisodeIndex) -> None:
    """Raise `NotYetError` if an episode may be in the part of a file that was not read yet."""
    if index.is_reading:
        raise NotYetError(
            f"The file of episodes is still being read: {min(index.progress, 0.99):.0%}."
        )


def _side(
    run: MonitoredRun, query: Query, entry: IndexEntry, record: Record, path: Sequence[int]
) -> Compared:
    try:
        turns = [level.turn for level in levels(record, path)]
    except UNREADABLE as error:
        raise NotThereError(f"This episode cannot be read: {error!r}") from error
    return Compared(run.name, query.source, entry, turns)


def _others(run: MonitoredRun, runs: Sequence[MonitoredRun]) -> list[str]:
    """Return the names of the other runs; first those that may have played the same task."""
    env = run.options().get("env.id")
    others = [other for other in runs if other is not run]
    others.sort(key=lambda other: other.options().get("env.id") != env)
    return [other.name for other in others][:_MOST_OTHERS]


def _page_start(query: Query, place: int | None, at: int) -> int:
    """Return where the page of the list begins that holds the episode at a place of it.

    A page of hits begins wherever the one before ended, at `at`, unless the episode lies before it.
    """
    place = place or 0
    return min(at, place) if query.text else place // PAGE * PAGE


def _neighbours(
    index: EpisodeIndex, query: Query, numbers: Numbers, place: int | None
) -> dict[str, str | None]:
    """Return the keys of the previous and the next episode of the list."""
    if place is None:
        return {"before": None, "after": None}

    def first_of(candidates: Numbers) -> str | None:
        hits = index.search(candidates, query.text, start=0, most=1, seconds=_NEIGHBOUR_SECONDS)
        return index.entry(hits.numbers[0]).key if hits.numbers else None

    return {
        "before": first_of(numbers[:place][::-1]),
        "after": first_of(numbers[place + 1 :]),
    }


def _nearby(
    index: EpisodeIndex, query: Query, numbers: Numbers, place: int | None
) -> list[tuple[IndexEntry, str]]:
    """Return some episodes of the list about a place; none where words are searched."""
    if place is None or query.text:
        return []
    start = max(0, min(place - _NEARBY, len(numbers) - 2 * _NEARBY - 1))
    near = numbers[start : start + 2 * _NEARBY + 1].tolist()
    return [(index.entry(n), words) for n, words in zip(near, index.beginnings(near), strict=True)]

"""Pages by path: from the query of an address to HTML, without HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlrl_learners.monitor.index import EpisodeIndex, Hits, Numbers
from mlrl_learners.monitor.library import Library, MonitoredRun
from mlrl_learners.monitor.lines import Finder
from mlrl_learners.monitor.pages import curves, episode, episodes
from mlrl_learners.monitor.pages.episodes import PAGE
from mlrl_learners.monitor.pages.overview import run_page
from mlrl_learners.monitor.query import Query
from mlrl_learners.report import render_report
from mlrl_learners.report.html import tag
from mlrl_learners.runs.files import FAILURES_FILE
from mlrl_learners.runs.stored import UNREADABLE
from mlrl_learners.runs.stored_run import read_run
from mlrl_learners.runs.summaries import levels, opponents_of, path_to, seed_of

__all__ = ["PAGES", "Asked", "NotThereError", "charts_stamp"]

_SEARCH_SECONDS = 1.5
_NEIGHBOUR_SECONDS = 0.4
_FAILURES_BYTES = 1 << 16


class NotThereError(Exception):
    """The requested run or episode does not exist; the message says what to do."""


@dataclass(frozen=True)
class Asked:
    """Query of an address.

    Attributes:
        words: Name -> last value.
        runs: All values of `run`.
    """

    words: Mapping[str, str]
    runs: Sequence[str] = field(default_factory=tuple)


def _curves(library: Library, asked: Asked) -> str:
    return curves.curves_page(_view(library, asked), library.runs(), str(library.root))


def _charts(library: Library, asked: Asked) -> str:
    return str(tag("div", curves.charts(_view(library, asked))))


def _runs(library: Library, asked: Asked) -> str:
    return str(tag("div", curves.run_list(_view(library, asked), library.runs())))


def charts_stamp(library: Library, asked: Asked) -> str:
    """Return a text that changes whenever the charts may, without drawing them."""
    view = _view(library, asked)
    return repr((view.words(), [run.stamp() for run in view.runs]))


def _episodes(library: Library, asked: Asked) -> str:
    run = _run(library, asked)
    query = Query.parse(asked.words)
    index = _index(run, query)
    numbers = index.select(query)
    at = _count(asked.words.get("at", ""))
    start = min(at, _count(asked.words.get("from", str(at))))
    before = min(_count(asked.words.get("found", "")), PAGE - 1) if query.text else 0
    most = PAGE - before
    hits = index.search(numbers, query.text, start=at, most=most, seconds=_SEARCH_SECONDS)
    listing = _listing(run, query, index, hits)
    return episodes.episodes_page(replace(listing, start=start, found_before=before))


def _fresh(library: Library, asked: Asked) -> str:
    run = _run(library, asked)
    query = Query.parse(asked.words)
    index = _index(run, query)
    listing = _listing(run, query, index, Hits((), 0, 0, 0))
    return str(tag("div", episodes.fresh(listing, _count(asked.words.get("seen", "")))))


def _episode(library: Library, asked: Asked) -> str:
    run = _run(library, asked)
    query = Query.parse(asked.words)
    index = _index(run, query)
    number = index.number(asked.words.get("key", ""))
    record = None if number is None else index.read(number)
    if number is None or record is None:
        raise NotThereError(
            "This episode does not exist. A resumed run removes the episodes that it repeats; "
            "or the file is still being read."
        )
    try:
        path = _path(asked.words.get("path", ""))
        numbers = index.select(query)
        place = next(iter((numbers == number).nonzero()[0].tolist()), None)
        if query.text and not path:
            path = path_to(record, Finder(query.text).is_in)
        opened = episode.OpenedEpisode(
            run=run.name,
            query=query,
            entry=index.entry(number),
            seed=seed_of(record),
            opponents=opponents_of(record),
            levels=levels(record, path),
            page_start=_page_start(query, place, _count(asked.words.get("at", ""))),
            **_neighbours(index, query, numbers, place),
        )
    except UNREADABLE as error:
        raise NotThereError(f"This episode cannot be read: {error!r}") from error
    return episode.episode_page(opened)


def _about(library: Library, asked: Asked) -> str:
    run = _run(library, asked)
    text = run.text(FAILURES_FILE)[-_FAILURES_BYTES:]
    return run_page(run, library.runs(), text.splitlines())


def _report(library: Library, asked: Asked) -> str:
    return render_report(read_run(_run(library, asked).path))


PAGES = {
    "/": _curves,
    "/charts": _charts,
    "/runs": _runs,
    "/episodes": _episodes,
    "/fresh": _fresh,
    "/episode": _episode,
    "/run": _about,
    "/report": _report,
}
"""Path -> function that renders the page."""


def _view(library: Library, asked: Asked) -> curves.View:
    return curves.View.parse(asked.words, asked.runs, library.runs())


def _run(library: Library, asked: Asked) -> MonitoredRun:
    name = asked.words.get("run", "")
    run = library.get(name)
    if run is None:
        raise NotThereError(f"There is no run {name!r} below {library.root}.")
    return run


def _index(run: MonitoredRun, query: Query) -> EpisodeIndex:
    index = run.episodes[query.source]
    index.catch_up()
    return index


def _listing(run: MonitoredRun, query: Query, index: EpisodeIndex, hits: Hits) -> episodes.Listing:
    return episodes.Listing(
        run=run.name,
        query=query,
        hits=hits,
        entries=[index.entry(number) for number in hits.numbers],
        known=len(index),
        progress=index.progress,
        unreadable=index.unreadable,
        start=hits.start,
        has_trees=index.has_trees,
    )


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


def _path(text: str) -> list[int]:
    return [_count(part) for part in text.split(".")[:100]] if text else []


def _count(text: str) -> int:
    """Parse a whole number of at most nine digits; anything else is 0."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0

"""Pages by path: from the query of an address to HTML, without HTTP."""

from dataclasses import replace

from mlrl_learners.monitor.index import EpisodeIndex, Hits
from mlrl_learners.monitor.library import Library, MonitoredRun
from mlrl_learners.monitor.opened_views import compare, opened_episode
from mlrl_learners.monitor.page_request import (
    NotThereError,
    PageRequest,
    count_of,
    index_of,
    run_of,
)
from mlrl_learners.monitor.pages import curves, episodes
from mlrl_learners.monitor.pages.episodes import PAGE
from mlrl_learners.monitor.pages.overview import run_page
from mlrl_learners.monitor.query import Query
from mlrl_learners.report import render_report
from mlrl_learners.report.html import tag
from mlrl_learners.runs.files import FAILURES_FILE
from mlrl_learners.runs.stored_run import read_run

__all__ = ["PAGES", "NotThereError", "PageRequest", "charts_stamp"]

_SEARCH_SECONDS = 1.5
_FAILURES_BYTES = 1 << 16


def _curves(library: Library, request: PageRequest) -> str:
    return curves.curves_page(_view(library, request), library.runs(), str(library.root))


def _charts(library: Library, request: PageRequest) -> str:
    return str(tag("div", curves.charts(_view(library, request))))


def _runs(library: Library, request: PageRequest) -> str:
    return str(tag("div", curves.run_list(_view(library, request), library.runs())))


def charts_stamp(library: Library, request: PageRequest) -> str:
    """Return a text that changes whenever the charts may, without drawing them."""
    view = _view(library, request)
    return repr((view.words(), [run.stamp() for run in view.runs]))


def _episodes(library: Library, request: PageRequest) -> str:
    run = run_of(library, request)
    query = Query.parse(request.words)
    index = index_of(run, query)
    numbers = index.select(query)
    at = count_of(request.words.get("at", ""))
    start = min(at, count_of(request.words.get("from", str(at))))
    before = min(count_of(request.words.get("found", "")), PAGE - 1) if query.text else 0
    most = PAGE - before
    hits = index.search(numbers, query.text, start=at, most=most, seconds=_SEARCH_SECONDS)
    listing = _listing(run, query, index, hits)
    return episodes.episodes_page(replace(listing, start=start, found_before=before))


def _fresh(library: Library, request: PageRequest) -> str:
    run = run_of(library, request)
    query = Query.parse(request.words)
    index = index_of(run, query)
    listing = _listing(run, query, index, Hits((), 0, 0, 0))
    return str(tag("div", episodes.fresh(listing, count_of(request.words.get("seen", "")))))


def _about(library: Library, request: PageRequest) -> str:
    run = run_of(library, request)
    text = run.text(FAILURES_FILE)[-_FAILURES_BYTES:]
    return run_page(run, library.runs(), text.splitlines())


def _report(library: Library, request: PageRequest) -> str:
    return render_report(read_run(run_of(library, request).path))


PAGES = {
    "/": _curves,
    "/charts": _charts,
    "/runs": _runs,
    "/episodes": _episodes,
    "/fresh": _fresh,
    "/episode": opened_episode,
    "/compare": compare,
    "/run": _about,
    "/report": _report,
}
"""Path -> function that renders the page."""


def _view(library: Library, request: PageRequest) -> curves.View:
    return curves.View.parse(request.words, request.runs, library.runs())


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

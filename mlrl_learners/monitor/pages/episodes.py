"""Page that lists the episodes of a run: search, filters, one page of hits."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_learners.monitor.index import Hits, IndexEntry
from mlrl_learners.monitor.pages.layout import address, frame, hidden, options
from mlrl_learners.monitor.query import ORDERS, SOURCES, Query
from mlrl_learners.report.chart_scales import counted, return_text
from mlrl_learners.report.html import Html, scrolled, tag
from mlrl_learners.report.transcript_markup import verdicts

__all__ = ["PAGE", "Listing", "episodes_page", "fresh"]

PAGE = 50
"""Number of episodes of a page."""


@dataclass(frozen=True)
class Listing:
    """One page of the list.

    Attributes:
        run: Name of the run.
        query: Query of the list.
        hits: Episodes found.
        entries: The same episodes with their figures.
        known: Number of episodes in the index.
        progress: Share of the file that has been indexed.
        unreadable: Number of lines or episodes that could not be read.
        start: Position at which the search began, of which `hits` may be a later part.
        found_before: Number of hits between `start` and the first one of `hits`.
        has_trees: Whether episodes have several paths.
    """

    run: str
    query: Query
    hits: Hits
    entries: Sequence[IndexEntry]
    known: int
    progress: float
    unreadable: int
    start: int = 0
    found_before: int = 0
    has_trees: bool = False

    @property
    def found(self) -> int:
        """Number of hits since `start`."""
        return self.found_before + len(self.hits.numbers)

    def words(self, **more: object) -> list[tuple[str, object]]:
        """Return the query of an address of this list."""
        return [("run", self.run), *self.query.words().items(), *more.items()]


def episodes_page(listing: Listing) -> str:
    """Return the page of a list."""
    live = address("/fresh", listing.words(seen=listing.known))
    body = [
        tag("h1", "Episodes of ", tag("span", listing.run, class_="name")),
        _sources(listing),
        _form(listing),
        tag("p", _count(listing), class_="count", id="count", role="status"),
        tag("div", fresh(listing, listing.known), id="fresh", data_live=live),
        tag("div", _table(listing) if listing.entries else _nothing(listing), id="hits"),
        tag("div", _pager(listing), id="pages"),
    ]
    return frame(f"Episodes of {listing.run}", body, run=listing.run, here="episodes")


def fresh(listing: Listing, seen: int) -> list[Html]:
    """Announce new episodes, and the progress of the index."""
    said: list[Html] = []
    if listing.progress < 1:
        text = f"The file is still being read: {listing.progress:.0%}."
        said.append(tag("p", text, class_="notice"))
    if listing.known != seen:
        more = listing.known - seen
        text = f"{more:,} more" if more > 0 else "The run was rewound; reload the list"
        link = tag("a", text, href=address("/episodes", listing.words()))
        said.append(tag("p", link, class_="notice"))
    return said


def _sources(listing: Listing) -> Html:
    links = [
        tag(
            "a",
            {"training": "Training", "evaluation": "Evaluations"}[source],
            href=address("/episodes", [("run", listing.run), ("source", source)]),
            aria_current="page" if source == listing.query.source else None,
        )
        for source in SOURCES
    ]
    return tag("nav", links, class_="tabs", aria_label="Where episodes come from")


def _form(listing: Listing) -> Html:
    query = listing.query
    solved = [("", "all"), ("yes", "solved"), ("no", "not solved")]
    orders = [(order, order) for order in ORDERS]
    return tag(
        "form",
        hidden([("run", listing.run), ("source", query.source)]),
        _field("text", "An agent wrote", query.text, search=True),
        _field("task", "Task", query.task),
        options("solved", "Solved", solved, query.solved),
        _span("Return", ("low", query.low), ("high", query.high), step="any"),
        _span("Iteration", ("first", query.first), ("last", query.last), step="1"),
        options("order", "Order", orders, query.order),
        tag("button", "Search"),
        class_="fields search",
        method="get",
        action="/episodes",
        role="search",
    )


def _field(name: str, label: str, value: str, *, search: bool = False) -> Html:
    box = tag(
        "input",
        type="search",
        name=name,
        value=value,
        data_search="" if search else None,
        placeholder="any words" if search else "any",
    )
    return tag("label", tag("span", label), box, class_="field wide-field" if search else "field")


def _span(label: str, *ends: tuple[str, object], step: str) -> Html:
    boxes = [
        tag(
            "input",
            type="number",
            step=step,
            name=name,
            value="" if value is None else str(value),
            placeholder=word,
            aria_label=f"{label}, {word}",
        )
        for (name, value), word in zip(ends, ("least", "most"), strict=True)
    ]
    return tag("div", tag("span", label), tag("div", boxes, class_="span"), class_="field")


def _count(listing: Listing) -> str:
    query, hits = listing.query, listing.hits
    if query.text:
        looked = f"{hits.end - listing.start:,} of {counted(hits.total, 'episode')} searched"
        return f"{listing.found:,} found, {looked}."
    shown = f"{hits.start + 1:,} to {hits.end:,} of " if hits.numbers else ""
    of_all = "" if query.is_plain else f" that match, of {listing.known:,}"
    lost = f" {listing.unreadable:,} could not be read." if listing.unreadable else ""
    return f"{shown}{counted(hits.total, 'episode')}{of_all}.{lost}"


def _table(listing: Listing) -> Html:
    is_tree = listing.has_trees
    heads = ["iteration", "return", *(["best"] if is_tree else []), "solved", "turns"]
    if is_tree:
        heads.append("paths")
    head = tag(
        "tr",
        tag("th", "task", scope="col", class_="first"),
        [tag("th", name, scope="col", class_=_column(name)) for name in heads],
    )
    rows = [_row(listing, entry, is_tree=is_tree) for entry in listing.entries]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="episodes")
    return scrolled("div", table, class_="wide")


def _row(listing: Listing, entry: IndexEntry, *, is_tree: bool) -> Html:
    summary = entry.summary
    start = {"at": listing.start} if listing.start else {}
    link = address("/episode", listing.words(**start, key=entry.key))
    cells: list[tuple[str, str | Html]] = [
        ("iteration", f"{entry.iteration:,}"),
        ("return", return_text(summary.mean)),
        *([("best", return_text(summary.best))] if is_tree else []),
        ("solved", verdicts(summary.solved_paths, summary.branches)),
        ("turns", str(summary.turns)),
        *([("paths", f"{summary.branches:,}")] if is_tree else []),
    ]
    name = tag("a", summary.task_id or "(no task)", href=link, data_row="", id=f"row-{entry.key}")
    return tag(
        "tr",
        tag("th", name, scope="row"),
        [tag("td", value, class_=_column(head)) for head, value in cells],
    )


def _column(name: str) -> str:
    return f"col-{name}"


def _pager(listing: Listing) -> Html | None:
    hits, links = listing.hits, []
    if listing.start > 0:
        first = address("/episodes", listing.words())
        links.append(tag("a", "First page", href=first, data_key="p"))
    if hits.end < hits.total and listing.query.text and listing.found < PAGE:
        so_far = {"from": listing.start, "found": listing.found}
        where = address("/episodes", listing.words(at=hits.end, **so_far))
        links.append(tag("a", "Continue the search", href=where, rel="next", data_continue=""))
    elif hits.end < hits.total:
        where = address("/episodes", listing.words(at=hits.end))
        links.append(tag("a", "Next page", href=where, rel="next", data_key="n"))
    return tag("nav", links, class_="pager", aria_label="Pages of the list") if links else None


def _nothing(listing: Listing) -> Html:
    if listing.known == 0:
        source = listing.query.source
        said = f"No episode of {source} is there yet; new ones are announced here."
    elif listing.hits.end < listing.hits.total:
        said = "No match so far; not all episodes have been searched yet."
    else:
        said = "No episode matches. Remove a filter, or search for other words."
    return tag("p", said, class_="empty")

"""The list of a run's episodes: searched, filtered, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_learners.monitor.index import Entry, Hits
from mlrl_learners.monitor.pages.layout import address, frame, hidden, options
from mlrl_learners.monitor.query import ORDERS, SOURCES, Query
from mlrl_learners.report.charts import number
from mlrl_learners.report.html import Html, tag
from mlrl_learners.report.transcripts import verdict

__all__ = ["Listing", "episodes_page", "fresh"]


@dataclass(frozen=True)
class Listing:
    """A page of the list.

    Attributes:
        run: The run's name.
        query: What was asked for.
        hits: What was found.
        entries: Its episodes.
        known: How many episodes the index has.
        progress: What share of the file it has read.
        unreadable: How many lines or episodes it could not read.
    """

    run: str
    query: Query
    hits: Hits
    entries: Sequence[Entry]
    known: int
    progress: float
    unreadable: int

    def words(self, **more: object) -> list[tuple[str, object]]:
        """Return the query of this list's addresses."""
        return [("run", self.run), *self.query.words().items(), *more.items()]


def episodes_page(listing: Listing) -> str:
    """Return the page of a list."""
    live = address("/fresh", listing.words(seen=listing.known))
    body = [
        tag("h1", "Episodes of ", tag("span", listing.run, class_="name")),
        _sources(listing),
        _form(listing),
        tag("p", _count(listing), class_="count", role="status"),
        tag("div", fresh(listing, listing.known), id="fresh", data_live=live),
        _table(listing) if listing.entries else _nothing(listing),
        _pager(listing),
    ]
    return frame(f"Episodes of {listing.run}", body, run=listing.run, here="episodes")


def fresh(listing: Listing, seen: int) -> list[Html]:
    """Say what has come since the page was made, and how far the index is."""
    said: list[Html] = []
    if listing.progress < 1:
        text = f"The file is still being read: {listing.progress:.0%}."
        said.append(tag("p", text, class_="notice"))
    if listing.known != seen:
        more = listing.known - seen
        text = f"{more:,} more" if more > 0 else "The run went back; look anew"
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
        looked = f"{hits.end - hits.start:,} of {hits.total:,} episodes looked through"
        return f"{len(hits.numbers):,} found, {looked}."
    shown = f"{hits.start + 1:,} to {hits.end:,} of " if hits.numbers else ""
    of_all = "" if query.is_plain else f" that fit, of {listing.known:,}"
    lost = f" {listing.unreadable:,} could not be read." if listing.unreadable else ""
    return f"{shown}{hits.total:,} episodes{of_all}.{lost}"


def _table(listing: Listing) -> Html:
    is_tree = any(entry.summary.branches > 1 for entry in listing.entries)
    heads = ["iteration", "return", *(["best"] if is_tree else []), "solved", "turns"]
    if is_tree:
        heads.append("lines")
    head = tag(
        "tr",
        tag("th", "task", scope="col", class_="first"),
        [tag("th", name, scope="col", class_=_column(name)) for name in heads],
    )
    rows = [_row(listing, entry, is_tree=is_tree) for entry in listing.entries]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="episodes")
    return tag("div", table, class_="wide")


def _row(listing: Listing, entry: Entry, *, is_tree: bool) -> Html:
    summary = entry.summary
    link = address("/episode", listing.words(key=entry.key))
    solved = f"{summary.solved:.0%}" if 0 < summary.solved < 1 else None
    cells: list[tuple[str, str | Html]] = [
        ("iteration", f"{entry.iteration:,}"),
        ("return", number(summary.mean)),
        *([("best", number(summary.best))] if is_tree else []),
        ("solved", solved or verdict(solved=summary.solved > 0)),
        ("turns", str(summary.turns)),
        *([("lines", f"{summary.branches:,}")] if is_tree else []),
    ]
    name = tag("a", summary.task_id or "(no task)", href=link, data_row="")
    return tag(
        "tr",
        tag("th", name, scope="row"),
        [tag("td", value, class_=_column(head)) for head, value in cells],
    )


def _column(name: str) -> str:
    return f"col-{name}"


def _pager(listing: Listing) -> Html | None:
    hits, links = listing.hits, []
    if hits.start > 0:
        first = address("/episodes", listing.words())
        links.append(tag("a", "To the beginning", href=first, data_key="p"))
    if hits.end < hits.total:
        word = "Look on" if listing.query.text else "Next page"
        where = address("/episodes", listing.words(at=hits.end))
        links.append(tag("a", word, href=where, rel="next", data_key="n"))
    return tag("nav", links, class_="pager", aria_label="Pages of the list") if links else None


def _nothing(listing: Listing) -> Html:
    if listing.known == 0:
        source = listing.query.source
        said = f"No episode of {source} is there yet; new ones are announced here."
    elif listing.hits.end < listing.hits.total:
        said = "Nothing found so far; there is more to look through."
    else:
        said = "No episode fits. Take a filter away, or look for other words."
    return tag("p", said, class_="empty")

"""Layout shared by all pages, and their addresses."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from mlrl_learners.report.html import Child, Html, tag, without_overrides

__all__ = ["address", "frame", "hidden", "message", "options"]

_STYLES = ("tokens.css", "style.css", "monitor.css")
_SCRIPTS = ("charts.js", "chart_tools.js", "monitor.js")
_KEYS = (
    ("/", "search"),
    ("j, k", "next and previous episode"),
    ("], [", "next and previous joint action of a tree"),
    ("Enter", "open the selected episode"),
    ("n", "next page of the list"),
    ("←, →", "move the cursor of the chart that has the focus; Esc removes it"),
    ("+, -, 0", "zoom into a chart about its cursor, out, and to the whole range"),
    ("f", "enlarge the chart that has the focus"),
    ("u", "back to the list"),
    ("?", "list of keys"),
)


def address(path: str, words: Iterable[tuple[str, object]] = ()) -> str:
    """Return an address of the monitor; `words` are its query, in order."""
    query = urlencode([(name, str(value)) for name, value in words])
    return f"{path}?{query}" if query else path


def frame(title: str, *body: Child, run: str | None = None, here: str = "") -> str:
    """Return a whole page.

    Args:
        title: Title of the window.
        body: Content of `main`.
        run: Run whose pages the navigation links to.
        here: The current one of them: `curves`, `episodes` or `run`.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", without_overrides(f"{title} · mlrl monitor")),
        tag("link", rel="icon", href="data:,"),
        [tag("link", rel="stylesheet", href=f"/static/{name}") for name in _STYLES],
        [tag("script", src=f"/static/{name}", defer="defer") for name in _SCRIPTS],
    )
    page = tag(
        "body",
        tag("a", "Skip to the page", href="#main", class_="skip"),
        _bar(run, here),
        tag("main", *body, id="main"),
        _help(),
    )
    return f"<!doctype html>\n{tag('html', head, page, lang='en')}\n"


def message(title: str, *said: Child) -> str:
    """Return a page with a single message."""
    home = tag("p", tag("a", "All runs", href="/"))
    return frame(title, tag("h1", title), tag("p", *said), home)


def options(
    name: str,
    label: str,
    choices: Sequence[tuple[str, str]],
    chosen: str,
    *,
    form: str | None = None,
) -> Html:
    """Return a labelled select element.

    Args:
        name: Name in the query.
        label: Text above it.
        choices: Pairs of value and label.
        chosen: Value that is selected.
        form: Id of its form, if it stands outside it.
    """
    listed = [
        tag("option", text, value=value, selected="selected" if value == chosen else None)
        for value, text in choices
    ]
    select = tag("select", listed, name=name, form=form)
    return tag("label", tag("span", label), select, class_="field")


def hidden(words: Iterable[tuple[str, object]]) -> list[Html]:
    """Return hidden fields of a form."""
    return [tag("input", type="hidden", name=name, value=str(value)) for name, value in words]


def _bar(run: str | None, here: str) -> Html:
    pages = [("curves", "Curves", "/")]
    if run is not None:
        pages = [
            ("curves", "Curves", address("/", [("chosen", 1), ("run", run)])),
            ("episodes", "Episodes", address("/episodes", [("run", run)])),
            ("run", "Run", address("/run", [("run", run)])),
        ]
    links = [
        tag("a", text, href=where, aria_current="page" if name == here else None)
        for name, text, where in pages
    ]
    return tag(
        "header",
        tag("a", "mlrl monitor", href="/", class_="brand"),
        tag("nav", links, aria_label="Pages"),
        tag("button", "Keys", type="button", id="show-keys", class_="quiet-button"),
        class_="bar",
    )


def _help() -> Html:
    rows = [tag("tr", tag("th", key, scope="row"), tag("td", what)) for key, what in _KEYS]
    close = tag("form", tag("button", "Close"), method="dialog")
    heading = tag("h2", "Keys", id="keys-title")
    table = tag("table", tag("tbody", rows))
    return tag("dialog", heading, table, close, id="keys", aria_labelledby="keys-title")

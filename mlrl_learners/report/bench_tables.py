"""Tables of the results of `mlrl bench run` and `mlrl bench crossplay`."""

from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.report.chart_scales import number
from mlrl_learners.report.html import Child, Html, isolated, scrolled, tag
from mlrl_learners.runs.stored import UNREADABLE

__all__ = ["draw_crossplay", "draw_suite"]

_SHADES = 4
_MOST_ACTORS = 64
_UNKNOWN = "\u2013"


def draw_suite(result: Mapping[str, Any]) -> Html | None:
    """Return the figures of each entry of a suite; None if the result cannot be read.

    Args:
        result: JSON values of `result.json`.
    """
    try:
        suite, actor = result["suite"], result["actor"]["name"]
        rows = [_entry(entry["name"], entry) for entry in result["entries"]]
        if len(rows) > 1 and result["overall"]:
            rows.append(_entry("all", result["overall"], class_="sum"))
        title = f"Suite {suite['name']} v{suite['version']}"
        note = "" if result["complete"] else " Episodes are missing: the same command resumes."
    except UNREADABLE:
        return None
    heads = ("mean return", "solved", "episodes", "tokens written")
    return tag(
        "section",
        tag("h2", title),
        tag("p", isolated(str(actor)), f" with 95 % intervals over tasks.{note}", class_="quiet"),
        _table("entry", heads, rows),
    )


def draw_crossplay(result: Mapping[str, Any]) -> Html | None:
    """Return the matrix, Elo and NashConv of a cross-play; None if the result cannot be read.

    Args:
        result: JSON values of `crossplay.json`.
    """
    try:
        names = [str(name) for name in result["actors"][:_MOST_ACTORS]]
        rows = [_actor(result, index, names) for index in range(len(names))]
        env = str(result["suite"]["entries"][0]["env"])
        tasks = int(result["tasks"])
    except UNREADABLE:
        return None
    return tag(
        "section",
        tag("h2", "Cross-play"),
        tag(
            "p",
            isolated(env),
            f", {tasks:,} tasks: mean return of the row's actor in one seat, with the actor of the "
            "column's number in the others, and 95 % intervals. Elo has mean 1500; NashConv is 0 "
            "in an equilibrium.",
            class_="quiet",
        ),
        # Numbers instead of names keep a matrix of many actors narrow.
        _table("actor", ["Elo", "NashConv", *map(str, range(1, len(names) + 1))], rows),
    )


def _table(first: str, heads: Sequence[str], rows: Sequence[Html]) -> Html:
    cells = [tag("th", isolated(head), scope="col") for head in heads]
    head = tag("tr", tag("th", first, scope="col", class_="first"), cells)
    return scrolled("div", tag("table", tag("thead", head), tag("tbody", rows), class_="matrix"),
                    class_="wide")  # fmt: skip


def _entry(name: str, figures: Mapping[str, Any], class_: str | None = None) -> Html:
    low, high = figures["interval"] or (None, None)
    cells = [
        _cell(figures["mean"], low, high),
        tag("td", f"{100 * float(figures['solved_rate']):.0f} %"),
        tag("td", f"{int(figures['episodes']):,}"),
        tag("td", f"{int(figures['tokens']):,}"),
    ]
    return tag("tr", tag("th", isolated(str(name)), scope="row"), cells, class_=class_)


def _actor(result: Mapping[str, Any], row: int, names: Sequence[str]) -> Html:
    """Return the row of an actor."""
    matrix, elo = result["matrix"] or {}, result["elo"] or {}
    values = [float(value) for line in matrix.get("mean") or [] for value in line]
    low, high = min(values, default=0.0), max(values, default=0.0)
    cells = []
    for column in range(len(names)):
        mean = _at(matrix, "mean", row, column)
        share = (mean - low) / (high - low) if mean is not None and high > low else 0.0
        bounds = [_at(matrix, end, row, column) for end in ("low", "high")]
        cells.append(_cell(mean, *bounds, shade=min(_SHADES, int((_SHADES + 1) * share))))
    exact = result["nash_conv"].get(names[row])
    return tag(
        "tr",
        tag("th", f"{row + 1} ", isolated(names[row]), scope="row"),
        _cell(*(_at(elo, end, row) for end in ("mean", "low", "high")), digits=0),
        tag("td", _UNKNOWN if exact is None else number(float(exact))),
        cells,
    )


def _at(table: Mapping[str, Any], name: str, *places: int) -> float | None:
    """Return a value of a table; None if the table is missing."""
    value = table.get(name)
    for place in places:
        value = None if value is None else value[place]
    return None if value is None else float(value)


def _cell(
    mean: float | None,
    low: float | None,
    high: float | None,
    *,
    shade: int | None = None,
    digits: int = 3,
) -> Html:
    """Return a mean with its interval below."""
    if mean is None:
        return tag("td", _UNKNOWN)
    children: list[Child] = [f"{float(mean):.{digits}f}"]
    if low is not None and high is not None:
        children.append(tag("small", f"{float(low):.{digits}f} to {float(high):.{digits}f}"))
    return tag("td", children, class_=None if shade is None else f"q{shade}")

"""Panes beside an episode: the list about it, and its tree with the totals of its agents."""

from collections.abc import Sequence

from mlrl_learners.monitor.index import IndexEntry
from mlrl_learners.monitor.pages.branches import draw_branches
from mlrl_learners.monitor.pages.opened import OpenedEpisode
from mlrl_learners.report.chart_scales import return_text
from mlrl_learners.report.html import Child, Html, isolated, scrolled, tag

__all__ = ["near_list", "side_pane"]

_MOST_COLUMNS = 3


def near_list(opened: OpenedEpisode) -> Html | None:
    """List the episodes about the opened one: task, return as a bar, beginning of an answer."""
    if len(opened.nearby) < 2:
        return None
    means = [entry.summary.mean for entry, _ in opened.nearby]
    low, high = min(0.0, *means), max(means)
    links = [_near(opened, entry, words, low, high) for entry, words in opened.nearby]
    heading = tag("h2", "On the list")
    return tag("nav", heading, tag("ol", links), class_="near", aria_label="Episodes on the list")


def side_pane(opened: OpenedEpisode) -> Html:
    """Show the totals of the agents, and the joint actions of every turn."""
    trees = [
        [tag("h2", f"Joint actions of turn {depth + 1}"), draw_branches(opened, depth)]
        for depth, level in enumerate(opened.levels)
        if len(level.branches) > 1
    ]
    return tag("aside", _totals(opened), trees, class_="totals", aria_label="Totals and tree")


def _near(opened: OpenedEpisode, entry: IndexEntry, words: str, low: float, high: float) -> Html:
    summary = entry.summary
    share = (summary.mean - low) / (high - low) if high > low else 0.0
    width = round(100 * share, 1) if share == share else 0.0  # NaN has no bar
    link = tag(
        "a",
        tag("span", isolated(summary.task_id or "(no task)"), class_="task"),
        tag("span", return_text(summary.mean), " ✓" if summary.solved else "", class_="figure"),
        tag("svg", tag("rect", width=100, height=4, class_="rail"),
            tag("rect", width=width, height=4, class_="filled"), viewBox="0 0 100 4",
            preserveAspectRatio="none", aria_hidden="true"),
        tag("span", words, class_="words") if words else None,
        href=opened.at(entry.key),
        aria_current="true" if entry.key == opened.entry.key else None,
    )  # fmt: skip
    return tag("li", link)


def _totals(opened: OpenedEpisode) -> Html | None:
    """Return a table of rewards by turn and agent; of returns alone if there are many agents."""
    turns = [level.turn for level in opened.levels]
    agents = list(dict.fromkeys(agent for turn in turns for agent in turn.rewards))
    if not agents:
        return None
    sums = [return_text(sum(turn.rewards.get(a, 0.0) for turn in turns)) for a in agents]
    tokens = [f"{sum(turn.tokens.get(agent) or 0 for turn in turns):,}" for agent in agents]
    columns = {"return": sums, **({"tokens": tokens} if set(tokens) != {"0"} else {})}
    if len(agents) > _MOST_COLUMNS:
        lines = [
            _row(isolated(agent), cells)
            for agent, *cells in zip(agents, *columns.values(), strict=True)
        ]
        links = [_turn_link(number, f"{number}") for number in range(1, len(turns) + 1)]
        nav = tag("nav", "turn", links, class_="turn-links", aria_label="Turns")
        return tag("div", _table("agent", list(columns), lines), nav if len(turns) > 1 else None)
    rows = [
        _row(_turn_link(number, f"turn {number}"), [_reward(turn.rewards.get(a)) for a in agents])
        for number, turn in enumerate(turns, 1)
    ]
    rows += [_row(name, cells, "sum" if name == "return" else None)
             for name, cells in columns.items()]  # fmt: skip
    return _table("reward", [isolated(agent) for agent in agents], rows)


def _turn_link(number: int, text: str) -> Html:
    return tag("a", text, href=f"#turn-{number}")


def _table(first: str, names: Sequence[Child], rows: Sequence[Html]) -> Html:
    heads = [tag("th", name, scope="col") for name in names]
    head = tag("tr", tag("th", first, scope="col", class_="first"), heads)
    return scrolled("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="wide")


def _row(name: Child, cells: Sequence[str], class_: str | None = None) -> Html:
    values = [tag("td", cell) for cell in cells]
    return tag("tr", tag("th", name, scope="row"), values, class_=class_)


def _reward(value: float | None) -> str:
    return "" if value is None else return_text(value)

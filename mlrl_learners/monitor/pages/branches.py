"""Joint actions of a turn as links, in a table if the answers of two agents are crossed."""

from collections.abc import Sequence

from mlrl_learners.monitor.pages.opened import OpenedEpisode
from mlrl_learners.report.chart_scales import return_text
from mlrl_learners.report.html import Child, Html, tag, without_overrides
from mlrl_learners.runs.summaries import TreeBranch

__all__ = ["draw_branches"]

_MOST_BRANCHES = 256
_SHADES = 4


def draw_branches(opened: OpenedEpisode, depth: int) -> Html:
    """Link to every joint action of a turn, as a table if the answers of two agents are crossed."""
    level = opened.levels[depth]
    count = f"{len(level.branches):,} joint actions"
    grid = _crossed(level.branches)
    label = f"{count} with their returns; number {level.chosen + 1} is shown"
    if grid is not None:
        down, across = level.branches[0].samples
        label += without_overrides(f"; answers of {down} down, of {across} across")
    chips = [_chip(opened, depth, i) for i in range(min(len(level.branches), _MOST_BRANCHES))]
    shown: Child
    if grid is None or len(level.branches) > _MOST_BRANCHES:
        shown = tag("p", chips, class_="chips")
    else:
        shown = _grid(grid, chips)
    links = tag("span", _sibling(opened, depth, -1, "["), _sibling(opened, depth, 1, "]"))
    caption = tag("p", tag("span", label), links, class_="quiet")
    return tag("nav", caption, shown, class_="branches", aria_label=f"Turn {depth + 1}: {count}")


def _sibling(opened: OpenedEpisode, depth: int, step: int, key: str) -> Html | None:
    level = opened.levels[depth]
    index = level.chosen + step
    if not 0 <= index < len(level.branches):
        return None
    is_first = all(len(above.branches) == 1 for above in opened.levels[:depth])
    text = "previous" if step < 0 else "next"
    href = opened.at(opened.entry.key, _path(opened, depth, index))
    return tag("a", text, href=href, data_key=key if is_first else None)


def _chip(opened: OpenedEpisode, depth: int, index: int) -> Html:
    level = opened.levels[depth]
    branch = level.branches[index]
    values = [other.value for other in level.branches]
    marks = (" ✓" if branch.solved else "") + (" …" if branch.goes_on else "")
    chosen = ", ".join(f"{agent} {number_of + 1}" for agent, number_of in branch.samples.items())
    hints = [without_overrides(f"answers: {chosen}")] if chosen else []
    if branch.is_estimate:
        hints.append("not played on: the rest is the mean of those beside it")
    return tag(
        "a",
        ("~" if branch.is_estimate else "") + return_text(branch.value) + marks,
        href=opened.at(opened.entry.key, _path(opened, depth, index)),
        title="; ".join(hints) or None,
        class_=f"chip q{_shade(branch.value, min(values), max(values))}",
        aria_current="true" if index == level.chosen else None,
    )


def _path(opened: OpenedEpisode, depth: int, index: int) -> list[int]:
    return [*(level.chosen for level in opened.levels[:depth]), index]


def _shade(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 0.0
    return min(_SHADES, max(0, round(_SHADES * share))) if share == share else 0


def _crossed(branches: Sequence[TreeBranch]) -> dict[tuple[int, int], int] | None:
    """Return pair of answers -> index of its branch; None unless all pairs were played."""
    agents = list(branches[0].samples)
    if len(agents) != 2 or any(list(branch.samples) != agents for branch in branches):
        return None
    pairs = {
        (branch.samples[agents[0]], branch.samples[agents[1]]): index
        for index, branch in enumerate(branches)
    }
    rows, columns = ({pair[side] for pair in pairs} for side in (0, 1))
    is_full = len(pairs) == len(branches) == len(rows) * len(columns)
    return pairs if is_full and len(rows) > 1 and len(columns) > 1 else None


def _grid(pairs: dict[tuple[int, int], int], chips: Sequence[Html]) -> Html:
    rows = sorted({row for row, _ in pairs})
    columns = sorted({column for _, column in pairs})
    head = tag("tr", tag("td", ""), [tag("th", f"{c + 1}", scope="col") for c in columns])
    body = [
        tag(
            "tr",
            tag("th", f"{row + 1}", scope="row"),
            [tag("td", chips[pairs[row, column]]) for column in columns],
        )
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="wide grid")

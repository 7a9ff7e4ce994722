"""One episode: what each agent read and wrote, turn by turn, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_learners.monitor.index import Entry
from mlrl_learners.monitor.pages.layout import address, frame
from mlrl_learners.monitor.query import Query
from mlrl_learners.monitor.stored import Branch, Level
from mlrl_learners.report.charts import number
from mlrl_learners.report.html import Child, Html, tag
from mlrl_learners.report.transcripts import reads, verdict, writes

__all__ = ["Reading", "episode_page"]

_MOST_BRANCHES = 256
_SHADES = 4


@dataclass(frozen=True)
class Reading:
    """What is read.

    Attributes:
        run: The run's name.
        query: The list that it was opened from.
        entry: The episode.
        seed: Of the episode.
        levels: The turns on the chosen way through its tree.
        before: Key of the episode before it on the list, None for none.
        after: Key of the next one.
    """

    run: str
    query: Query
    entry: Entry
    seed: int | None
    levels: Sequence[Level]
    before: str | None
    after: str | None

    def at(self, key: str, path: Sequence[int] = ()) -> str:
        """Return the address of an episode of the same list, or of a way through its tree."""
        way: list[tuple[str, object]] = [("path", ".".join(map(str, path)))] if path else []
        words = [("run", self.run), *self.query.words().items(), ("key", key), *way]
        return address("/episode", words)


def episode_page(reading: Reading) -> str:
    """Return the page of an episode."""
    entry = reading.entry
    turns = [_turn(reading, depth) for depth in range(len(reading.levels))]
    return frame(
        entry.summary.task_id,
        _steps(reading),
        tag("h1", entry.summary.task_id or "(no task)", class_="name"),
        tag("p", _facts(reading), class_="facts"),
        turns or tag("p", "Nobody played a turn of it.", class_="empty"),
        run=reading.run,
        here="episodes",
    )


def _steps(reading: Reading) -> Html:
    """Lead to the list, and to the episodes beside this one."""
    words = [("run", reading.run), *reading.query.words().items()]
    links = [tag("a", "↑ list", href=address("/episodes", words), data_key="u")]
    for text, key, rel, letter in (
        ("← previous", reading.before, "prev", "k"),
        ("next →", reading.after, "next", "j"),
    ):
        if key is not None:
            links.append(tag("a", text, href=reading.at(key), rel=rel, data_key=letter))
        else:
            links.append(tag("span", text, class_="quiet", aria_disabled="true"))
    return tag("nav", links, class_="pager", aria_label="Episodes beside this one")


def _facts(reading: Reading) -> list[Child]:
    entry = reading.entry
    summary = entry.summary
    facts: list[Child] = [verdict(solved=summary.solved > 0)]
    if summary.branches > 1:
        returns = f"mean return {number(summary.mean)}, best {number(summary.best)}"
        facts.append(tag("span", returns, class_="pill"))
        facts.append(tag("span", f"{summary.branches:,} lines played", class_="pill"))
    else:
        facts.append(tag("span", f"return {number(summary.mean)}", class_="pill"))
    where = [f"iteration {entry.iteration:,}"]
    if reading.seed is not None:
        where.append(f"seed {reading.seed}")
    where.append(f"line {int(entry.key.partition('-')[0]) + 1:,} of the file")
    facts.append(tag("span", " · ".join(where), class_="quiet"))
    return facts


def _turn(reading: Reading, depth: int) -> Html:
    level = reading.levels[depth]
    turn, reward = level.turn, f"team reward {number(level.reward)}"
    agents = list(dict.fromkeys([*turn.observations, *turn.actions]))
    cards = [
        tag(
            "article",
            reads(agent, turn.observations[agent], unfolded=True)
            if agent in turn.observations
            else None,
            writes(agent, turn) if agent in turn.actions else None,
            class_=f"agent c{index % 8}",
        )
        for index, agent in enumerate(agents)
    ]
    return tag(
        "section",
        tag("h2", f"Turn {depth + 1}", tag("span", reward, class_="pill")),
        _branches(reading, depth) if len(level.branches) > 1 else None,
        tag("div", cards, class_=f"agents n{min(len(cards), 4)}"),
        class_="turn",
    )


def _branches(reading: Reading, depth: int) -> Html:
    """Let one joint action be chosen: as a table where two agents' answers were crossed."""
    level = reading.levels[depth]
    count = f"{len(level.branches):,} joint actions"
    grid = _crossed(level.branches)
    label = f"{count} with their returns; number {level.chosen + 1} is shown"
    if grid is not None:
        down, across = level.branches[0].samples
        label += f"; answers of {down} down, of {across} across"
    chips = [_chip(reading, depth, i) for i in range(min(len(level.branches), _MOST_BRANCHES))]
    shown: Child
    if grid is None or len(level.branches) > _MOST_BRANCHES:
        shown = tag("p", chips, class_="chips")
    else:
        shown = _grid(grid, chips)
    links = tag("span", _sibling(reading, depth, -1, "["), _sibling(reading, depth, 1, "]"))
    caption = tag("p", tag("span", label), links, class_="quiet")
    return tag("nav", caption, shown, class_="branches", aria_label=f"Turn {depth + 1}: {count}")


def _sibling(reading: Reading, depth: int, step: int, key: str) -> Html | None:
    level = reading.levels[depth]
    index = level.chosen + step
    if not 0 <= index < len(level.branches):
        return None
    is_first = all(len(above.branches) == 1 for above in reading.levels[:depth])
    text = "previous" if step < 0 else "next"
    href = reading.at(reading.entry.key, _path(reading, depth, index))
    return tag("a", text, href=href, data_key=key if is_first else None)


def _chip(reading: Reading, depth: int, index: int) -> Html:
    level = reading.levels[depth]
    branch = level.branches[index]
    values = [other.value for other in level.branches]
    marks = (" ✓" if branch.solved else "") + (" …" if branch.goes_on else "")
    chosen = ", ".join(f"{agent} {number_of + 1}" for agent, number_of in branch.samples.items())
    return tag(
        "a",
        number(round(branch.value, 3)) + marks,
        href=reading.at(reading.entry.key, _path(reading, depth, index)),
        title=f"answers: {chosen}" if chosen else None,
        class_=f"chip q{_shade(branch.value, min(values), max(values))}",
        aria_current="true" if index == level.chosen else None,
    )


def _path(reading: Reading, depth: int, index: int) -> list[int]:
    return [*(level.chosen for level in reading.levels[:depth]), index]


def _shade(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 0.0
    return min(_SHADES, max(0, round(_SHADES * share))) if share == share else 0


def _crossed(branches: Sequence[Branch]) -> dict[tuple[int, int], int] | None:
    """Return the branch of each pair of answers, where each was played with each."""
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

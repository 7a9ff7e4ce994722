"""Page of one task in two runs: answers side by side, with the words marked that differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.monitor.index import IndexEntry
from mlrl_learners.monitor.pages.layout import address, frame
from mlrl_learners.monitor.pages.opened import colors_of
from mlrl_learners.monitor.query import Source
from mlrl_learners.report.chart_scales import return_text
from mlrl_learners.report.html import Html, isolated, tag
from mlrl_learners.report.transcript_markup import reads, verdicts
from mlrl_learners.report.word_changes import beside
from mlrl_learners.runs.stored import StoredTurn

__all__ = ["Compared", "compare_page"]


@dataclass(frozen=True)
class Compared:
    """One side of the comparison.

    Attributes:
        run: Name of its run.
        source: Episodes of training or of evaluations.
        entry: The episode in the index.
        turns: Its turns, on the best path of a tree.
    """

    run: str
    source: Source
    entry: IndexEntry
    turns: Sequence[StoredTurn]


def compare_page(left: Compared, right: Compared) -> str:
    """Return the page of a task in two runs."""
    task = left.entry.summary.task_id or "(no task)"
    last = max(len(left.turns), len(right.turns))
    colors = colors_of([*left.turns, *right.turns])
    body = [
        tag("h1", task, class_="name"),
        tag("p", "The same task in two runs; words that differ are marked.", class_="quiet"),
        tag("div", _head(left), _head(right), class_="agents n2"),
        [_turn(left, right, depth, colors) for depth in range(last)],
    ]
    return frame(f"{task} · {left.run} and {right.run}", body, run=left.run, here="episodes")


def _head(side: Compared) -> Html:
    summary = side.entry.summary
    words = [("run", side.run), ("source", side.source), ("key", side.entry.key)]
    return tag(
        "article",
        tag("h2", tag("a", isolated(side.run), href=address("/episode", words))),
        tag("p", f"iteration {side.entry.iteration:,} ",
            tag("span", f"return {return_text(summary.mean)}", class_="pill"), " ",
            verdicts(summary.solved_paths, summary.branches)),
        class_="agent c7",
    )  # fmt: skip


def _turn(left: Compared, right: Compared, depth: int, colors: Mapping[str, int]) -> Html:
    turns = [side.turns[depth] if depth < len(side.turns) else None for side in (left, right)]
    agents = dict.fromkeys(agent for turn in turns if turn for agent in turn.actions)
    rows = [_agent(agent, colors[agent], turns) for agent in agents]
    return tag("section", tag("h2", f"Turn {depth + 1}"), rows, class_="turn")


def _agent(agent: str, color: int, turns: Sequence[StoredTurn | None]) -> Html:
    texts = [turn.actions.get(agent, "") if turn else "" for turn in turns]
    marked = beside(texts[0], texts[1])
    kind = "writes code-like" if any("```" in text for text in texts) else "writes"
    cards = [
        tag(
            "article",
            reads(agent, turn.observations[agent]) if turn and agent in turn.observations else None,
            tag("div", tag("div", tag("strong", isolated(agent), " writes"), _pill(turn, agent),
                           class_="who"), text, class_=kind),
            class_=f"agent c{color}",
        )
        for turn, text in zip(turns, marked, strict=True)
    ]  # fmt: skip
    return tag("div", cards, class_="agents n2")


def _pill(turn: StoredTurn | None, agent: str) -> Html:
    reward = turn.rewards.get(agent) if turn else None
    said = "did not write" if reward is None else f"reward {return_text(reward)}"
    return tag("span", said, class_="pill")

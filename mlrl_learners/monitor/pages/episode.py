"""Page of an episode: observations and answers of each agent, turn by turn."""

from collections.abc import Mapping

from mlrl_learners.monitor.pages.layout import address, frame, hidden
from mlrl_learners.monitor.pages.opened import OpenedEpisode, agents_of, colors_of
from mlrl_learners.monitor.pages.panes import near_list, side_pane
from mlrl_learners.report.chart_scales import return_text
from mlrl_learners.report.html import Child, Html, isolated, tag
from mlrl_learners.report.transcript_markup import (
    played_by,
    reads,
    verdicts,
    waits,
    writes,
)
from mlrl_learners.report.turn_pictures import turn_pictures, workflow_of
from mlrl_learners.report.word_changes import changes

__all__ = ["episode_page"]


def episode_page(opened: OpenedEpisode) -> str:
    """Return the page of an episode: the list about it, its agents, its tree and totals."""
    entry = opened.entry
    played = [level.turn for level in opened.levels]
    colors, workflow = colors_of(played), workflow_of(played)
    turns = [_turn(opened, depth, colors) for depth in range(len(opened.levels))]
    read = tag(
        "div",
        _crumbs(opened),
        _steps(opened),
        tag("h1", entry.summary.task_id or "(no task)", class_="name"),
        tag("p", _facts(opened), class_="facts"),
        _exports(opened),
        class_="opened",
    )
    shown = turns or tag("p", "This episode has no turns.", class_="empty")
    body = tag("div", read, side_pane(opened), tag("div", workflow, shown, class_="turns"),
               near_list(opened), class_="reader")  # fmt: skip
    title = f"{entry.summary.task_id} · {opened.run}"
    return frame(title, body, run=opened.run, here="episodes")


def _exports(opened: OpenedEpisode) -> Html:
    """Link to the episode as text, and to the same task in another run."""
    links: list[Child] = [
        tag("a", "Markdown", href=opened.same("/markdown"), download="episode.md"),
        tag("a", "raw JSON", href=opened.same("/raw"), download="episode.json"),
    ]
    if opened.others:
        names = [tag("option", name, value=name) for name in opened.others]
        words = [("run", opened.run), ("source", opened.query.source), ("key", opened.entry.key)]
        links.append(
            tag(
                "form",
                hidden(words),
                tag("label", "Compare with ", tag("select", names, name="other")),
                tag("button", "Compare"),
                action="/compare",
                method="get",
                class_="compare-form",
            )
        )
    return tag("div", links, class_="exports")


def _crumbs(opened: OpenedEpisode) -> Html:
    """Name the run and the iteration, with links to their episodes."""
    run: list[tuple[str, object]] = [("run", opened.run), ("source", opened.query.source)]
    iteration = opened.entry.iteration
    of_iteration = [*run, ("first", iteration), ("last", iteration)]
    links = [
        tag("a", isolated(opened.run), href=address("/episodes", run), class_="name"),
        tag("a", f"iteration {iteration:,}", href=address("/episodes", of_iteration)),
    ]
    return tag("nav", links[0], " / ", links[1], class_="crumbs", aria_label="Breadcrumbs")


def _steps(opened: OpenedEpisode) -> Html:
    """Link to the list, the previous and the next episode."""
    up = f"{address('/episodes', opened.words())}#row-{opened.entry.key}"
    links = [tag("a", "↑ list", href=up, data_key="u")]
    for text, key, rel, letter in (
        ("← previous", opened.before, "prev", "k"),
        ("next →", opened.after, "next", "j"),
    ):
        if key is not None:
            links.append(tag("a", text, href=opened.at(key), rel=rel, data_key=letter))
        else:
            links.append(tag("span", text, class_="quiet", aria_disabled="true"))
    return tag("nav", links, class_="pager", aria_label="Previous and next episode")


def _facts(opened: OpenedEpisode) -> list[Child]:
    entry = opened.entry
    summary = entry.summary
    facts: list[Child] = [verdicts(summary.solved_paths, summary.branches)]
    if summary.branches > 1:
        returns = f"mean return {return_text(summary.mean)}, best {return_text(summary.best)}"
        facts.append(tag("span", returns, class_="pill"))
        facts.append(tag("span", f"{summary.branches:,} paths played", class_="pill"))
    else:
        facts.append(tag("span", f"return {return_text(summary.mean)}", class_="pill"))
    facts += [tag("span", pair, class_="pill") for pair in played_by(opened.opponents)]
    where = [] if opened.seed is None else [f"seed {opened.seed}"]
    where.append(f"line {int(entry.key.partition('-')[0]) + 1:,} of the file")
    facts.append(tag("span", " · ".join(where), class_="quiet"))
    return facts


def _answer(opened: OpenedEpisode, depth: int, agent: str) -> Html:
    """Show an answer, and what changed in it since the turn before."""
    turn = opened.levels[depth].turn
    before = opened.levels[depth - 1].turn.actions.get(agent) if depth else None
    text = turn.actions[agent]
    return tag(
        "div",
        writes(agent, turn, opponent=opened.opponents.get(agent), words=opened.query.text),
        None if before is None else changes(before, text, f"turn {depth}"),
        tag("button", "Copy", type="button", data_copy=text, class_="enhanced copy",
            aria_label=f"Copy what {agent} wrote"),
    )  # fmt: skip


def _turn(opened: OpenedEpisode, depth: int, colors: Mapping[str, int]) -> Html:
    level = opened.levels[depth]
    turn, reward = level.turn, f"team reward {return_text(level.reward)}"
    name_of = opened.opponents.get
    cards = [
        tag(
            "article",
            reads(agent, turn.observations[agent], unfolded=True, opponent=name_of(agent))
            if agent in turn.observations
            else None,
            _answer(opened, depth, agent) if agent in turn.actions else None,
            waits(agent, turn, opponent=name_of(agent)) if agent in turn.waiting else None,
            class_=f"agent c{colors[agent]}",
        )
        for agent in agents_of(turn)
    ]
    return tag(
        "section",
        tag("h2", f"Turn {depth + 1}", tag("span", reward, class_="pill")),
        tag("div", cards, class_=f"agents n{min(len(cards), 4)}"),
        turn_pictures(turn, leave_out={"workflow"}),
        class_="turn",
        id=f"turn-{depth + 1}",
    )

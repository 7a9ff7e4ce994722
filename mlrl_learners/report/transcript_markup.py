"""HTML transcripts of episodes: observations, answers and rewards of each agent."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.report.chart_scales import counted, number
from mlrl_learners.report.highlight import highlight
from mlrl_learners.report.html import Child, Html, isolated, mark_words, scrolled, tag
from mlrl_learners.report.turn_pictures import turn_pictures, without_pictures
from mlrl_learners.runs.stored import StoredEpisode, StoredTurn

__all__ = [
    "Side",
    "compare",
    "played_by",
    "prose",
    "reads",
    "verdict",
    "verdicts",
    "waits",
    "writes",
]

_MOST_CHARACTERS = 8_000
_FENCE = re.compile(r"^[ \t]*```([^\n]*)\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE_LINE = re.compile(r"^(def |class |import |from \w+ import |@\w+|    return )", re.MULTILINE)


@dataclass(frozen=True)
class Side:
    """One column of a comparison, such as the episodes before training.

    Attributes:
        title: Column heading.
        episodes: Its episodes.
    """

    title: str
    episodes: Sequence[StoredEpisode]


def compare(sides: Sequence[Side], *, limit: int, open_first: int = 1) -> Html:
    """Show the episodes that all sides share, by task and seed, one column per side.

    Args:
        sides: One or two sides; the last one decides the order.
        limit: Maximum number of episodes shown.
        open_first: Number of episodes that are unfolded.
    """
    keyed = [{(e.task_id, e.seed): e for e in reversed(side.episodes)} for side in sides]
    everywhere = [
        key
        for key in dict.fromkeys((e.task_id, e.seed) for e in sides[-1].episodes)
        if all(key in episodes for episodes in keyed)
    ]
    shown = everywhere[:limit]
    cards = [
        _card([(side.title, episodes[key]) for side, episodes in zip(sides, keyed, strict=True)],
              unfolded=index < open_first)
        for index, key in enumerate(shown)
    ]  # fmt: skip
    note = None
    if len(everywhere) > len(shown):
        note = tag("p", f"{len(shown)} of {len(everywhere)} episodes are shown.", class_="quiet")
    return tag("div", cards or tag("p", "No episode yet.", class_="quiet"), note)


def prose(text: str, words: str = "") -> list[Html]:
    """Show a text unchanged, with fenced blocks and code in monospace.

    Args:
        text: The text.
        words: Words to mark in it.
    """
    shown, note = _shorten(text)
    parts = [mark_words(part, words) for part in _blocks(shown)]
    if note is not None and words and words.casefold() in text[len(shown) :].casefold():
        note = tag("div", note, tag("p", "The searched words occur there.", class_="quiet"))
    return parts if note is None else [*parts, note]


def reads(agent: str, text: str, *, unfolded: bool = False, opponent: str | None = None) -> Html:
    """Show the observation of an agent, with the name of the opponent that plays it, if any."""
    return tag(
        "details",
        tag("summary", _named(agent, opponent), f" reads ({counted(len(text), 'character')})"),
        scrolled("div", prose(text), class_="text"),
        class_="reads",
        open="open" if unfolded else None,
    )


def writes(agent: str, turn: StoredTurn, *, opponent: str | None = None, words: str = "") -> Html:
    """Show the answer of an agent in a turn, with its reward and its opponent, if any.

    Args:
        agent: The agent.
        turn: The turn.
        opponent: Name of the opponent that plays the agent.
        words: Words to mark in the answer.
    """
    reward = turn.rewards.get(agent)
    pill = tag("span", f"reward {number(reward)}", class_="pill") if reward is not None else None
    is_cut = turn.finish_reasons.get(agent) == "length"
    return tag(
        "div",
        tag(
            "div",
            tag("strong", _named(agent, opponent), " writes"),
            tag("span", _length(agent, turn), class_="quiet"),
            pill,
            tag("span", "cut by the limit", class_="pill warn") if is_cut else None,
            class_="who",
        ),
        prose(turn.actions[agent], words),
        _parts(turn.components.get(agent, {})),
        _diagnostics(turn.diagnostics.get(agent)),
        class_="writes",
    )


def waits(agent: str, turn: StoredTurn, *, opponent: str | None = None) -> Html:
    """Show that an agent waited in a turn, with the reward that it got meanwhile.

    Diagnostics that are those of an agent that wrote are shown there.
    """
    reward, facts = turn.rewards[agent], turn.diagnostics.get(agent)
    is_shown = any(facts == turn.diagnostics.get(other) for other in turn.actions)
    return tag(
        "div",
        tag(
            "div",
            tag("strong", _named(agent, opponent), " waits"),
            tag("span", f"reward {number(reward)}", class_="pill") if reward else None,
            class_="who",
        ),
        _parts(turn.components.get(agent, {})),
        None if is_shown else _diagnostics(facts),
        class_="writes",
    )


def verdict(*, solved: bool) -> Html:
    """Show whether an episode was solved."""
    word, kind = ("✓ solved", "good") if solved else ("not solved", "plain")
    return tag("span", word, class_=f"pill {kind}")


def verdicts(solved: int, paths: int) -> Html:
    """Show how many of the paths of an episode ended solved."""
    if paths == 1:
        return verdict(solved=solved > 0)
    kind = "good" if solved else "plain"
    return tag("span", f"{solved:,} of {paths:,} solved", class_=f"pill {kind}")


def played_by(opponents: Mapping[str, str]) -> list[list[Child]]:
    """Name the opponent of each agent that has one."""
    return [
        [isolated(agent), " is played by ", isolated(name)] for agent, name in opponents.items()
    ]


def _named(agent: str, opponent: str | None) -> Html:
    return isolated(agent if opponent is None else f"{agent} ({opponent})")


def _shorten(text: str) -> tuple[str, Html | None]:
    more = len(text) - _MOST_CHARACTERS
    if more <= 0:
        return text, None
    note = tag("p", f"… {counted(more, 'character')} more.", class_="quiet")
    return text[:_MOST_CHARACTERS], note


def _blocks(text: str) -> list[Html]:
    if not text.strip():
        return [tag("p", "(nothing)" if not text else "(white space)", class_="quiet")]
    if not _FENCE.search(text) and _CODE_LINE.search(text):
        return [scrolled("pre", highlight(text))]
    parts: list[Html] = []
    end = 0
    for match in _FENCE.finditer(text):
        parts += _plain(text[end : match.start()])
        parts.append(scrolled("pre", highlight(match[2].rstrip("\n"), match[1])))
        end = match.end()
    return parts + _plain(text[end:])


def _plain(text: str) -> list[Html]:
    return [tag("div", text.strip("\n"), class_="prose")] if text.strip() else []


def _card(played: Sequence[tuple[str, StoredEpisode]], *, unfolded: bool) -> Html:
    first = played[0][1]
    heading = tag(
        "summary",
        tag("strong", isolated(first.task_id)),
        tag("span", f"seed {first.seed}", class_="quiet"),
        tag(
            "span", "return " + " → ".join(number(e.team_return) for _, e in played), class_="pill"
        ),
        verdict(solved=played[-1][1].solved),
    )
    columns = [
        tag(
            "div",
            tag("h4", title) if title else None,
            [tag("p", pair, class_="quiet") for pair in played_by(e.opponents)],
            [_turn(turn, i, e, "h5" if title else "h3") for i, turn in enumerate(e.turns)],
        )
        for title, e in played
    ]
    return tag(
        "details",
        heading,
        _opening(first),
        tag("div", columns, class_=f"columns n{len(columns)}"),
        class_="episode",
        open="open" if unfolded else None,
    )


def _opening(episode: StoredEpisode) -> Html | None:
    """Show the first observations, which all columns share."""
    if not episode.turns:
        return None
    return tag("div", [reads(agent, text) for agent, text in episode.turns[0].observations.items()])


def _turn(turn: StoredTurn, index: int, episode: StoredEpisode, level: str) -> Html:
    later, name_of = index > 0, episode.opponents.get
    heading = f"Turn {index + 1}" if len(episode.turns) > 1 else None
    return tag(
        "section",
        tag(level, heading) if heading else None,
        [reads(a, text, opponent=name_of(a)) for a, text in turn.observations.items() if later],
        [writes(agent, turn, opponent=name_of(agent)) for agent in turn.actions],
        [waits(agent, turn, opponent=name_of(agent)) for agent in turn.waiting],
        turn_pictures(turn),
        class_="turn",
    )


def _parts(components: Mapping[str, float]) -> Html | None:
    if not components:
        return None
    parts = [tag("span", isolated(name), f" {number(value)}") for name, value in components.items()]
    return tag("p", parts, class_="parts")


def _length(agent: str, turn: StoredTurn) -> str:
    characters = counted(len(turn.actions[agent]), "character")
    tokens = turn.tokens.get(agent)
    return f"{counted(tokens, 'token')}, {characters}" if tokens else characters


def _diagnostics(facts: object) -> list[Html | None]:
    """Show checks as a list, and other diagnostics as JSON; `turn_pictures` shows the rest."""
    if not isinstance(facts, Mapping):
        return [_raw(facts)]
    facts = without_pictures(facts)
    checks = facts.get("checks")
    if not (isinstance(checks, Sequence) and all(isinstance(c, Mapping) for c in checks)):
        return [_raw(facts)]
    rest = {name: value for name, value in facts.items() if name != "checks"}
    items = [_check(check) for check in checks]
    return [tag("ul", items, class_="checks") if items else None, _raw(rest)]


def _check(check: Mapping[str, object]) -> Html:
    passed = bool(check.get("passed"))
    status = check.get("status", "passed" if passed else "failed")
    details = check.get("details")
    said = [str(one) for one in details] if isinstance(details, Sequence) else []
    shown, note = _shorten("\n".join(said))
    return tag(
        "li",
        tag("span", "✓" if passed else "✗", class_="mark", aria_hidden="true"),
        tag("span", isolated(str(check.get("name", "check")))),
        tag("span", " ", isolated(str(status)), class_="status"),
        scrolled("div", shown, class_="details") if shown else None,
        note,
        class_="passed" if passed else "failed",
    )


def _raw(facts: object) -> Html | None:
    if not facts:
        return None
    text = json.dumps(facts, indent=1, ensure_ascii=False, default=str)
    shown, note = _shorten(text)
    body = scrolled("pre", shown)
    return tag("details", tag("summary", "diagnostics"), body, note, class_="reads")

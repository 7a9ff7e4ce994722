"""Transcripts that people read: what each agent was shown, what it wrote, what that earned."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.report.charts import number
from mlrl_learners.report.html import Html, tag
from mlrl_learners.report.records import Episode, Turn

__all__ = ["Side", "compare", "prose"]

_MOST_CHARACTERS = 8_000
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE_LINE = re.compile(r"^(def |class |import |from \w+ import |@\w+|    return )", re.MULTILINE)


@dataclass(frozen=True)
class Side:
    """Episodes of one moment, e.g. before training.

    Attributes:
        title: Column heading.
        episodes: As played then.
    """

    title: str
    episodes: Sequence[Episode]


def compare(sides: Sequence[Side], *, limit: int, open_first: int = 1) -> Html:
    """Show the same tasks at every moment, a column each; tasks in the order of the last side.

    Args:
        sides: One or two moments.
        limit: Most tasks shown.
        open_first: How many are unfolded.
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


def prose(text: str) -> list[Html]:
    """Show text as written, fenced blocks and bare code in monospace."""
    shown, note = _shorten(text)
    if note is not None:
        return [*prose(shown), note]
    if not text.strip():
        return [tag("p", "(nothing)" if not text else "(white space)", class_="quiet")]
    if not _FENCE.search(text) and _CODE_LINE.search(text):
        return [tag("pre", tag("code", text))]
    parts: list[Html] = []
    end = 0
    for match in _FENCE.finditer(text):
        parts += _plain(text[end : match.start()])
        parts.append(tag("pre", tag("code", match.group(1).rstrip("\n"))))
        end = match.end()
    return parts + _plain(text[end:])


def _shorten(text: str) -> tuple[str, Html | None]:
    more = len(text) - _MOST_CHARACTERS
    if more <= 0:
        return text, None
    return text[:_MOST_CHARACTERS], tag("p", f"… {more:,} characters more", class_="quiet")


def _plain(text: str) -> list[Html]:
    return [tag("div", text.strip("\n"), class_="prose")] if text.strip() else []


def _card(played: Sequence[tuple[str, Episode]], *, unfolded: bool) -> Html:
    first = played[0][1]
    heading = tag(
        "summary",
        tag("strong", first.task_id),
        tag("span", f"seed {first.seed}", class_="quiet"),
        tag("span", "return " + " → ".join(number(e.total) for _, e in played), class_="pill"),
        _verdict(played[-1][1]),
    )
    columns = [
        tag("div", tag("h4", title), [_turn(turn, i, e) for i, turn in enumerate(e.turns)])
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


def _opening(episode: Episode) -> Html | None:
    """What the agents read first, once for all columns."""
    if not episode.turns:
        return None
    return tag(
        "div", [_reads(agent, text) for agent, text in episode.turns[0].observations.items()]
    )


def _turn(turn: Turn, index: int, episode: Episode) -> Html:
    later = index > 0
    heading = f"Turn {index + 1}" if len(episode.turns) > 1 else None
    return tag(
        "section",
        tag("h5", heading) if heading else None,
        [_reads(agent, text) for agent, text in turn.observations.items()] if later else None,
        [_writes(agent, text, turn) for agent, text in turn.actions.items()],
        class_="turn",
    )


def _reads(agent: str, text: str) -> Html:
    label = f"{agent} reads ({len(text):,} characters)"
    return tag(
        "details", tag("summary", label), tag("div", prose(text), class_="text"), class_="reads"
    )


def _writes(agent: str, text: str, turn: Turn) -> Html:
    reward = turn.rewards.get(agent)
    length = tag("span", f"{len(text):,} characters", class_="quiet")
    pill = tag("span", f"reward {number(reward)}", class_="pill") if reward is not None else None
    return tag(
        "div",
        tag("div", tag("strong", f"{agent} writes"), length, pill, class_="who"),
        prose(text),
        _parts(turn.components.get(agent, {})),
        _diagnostics(turn.diagnostics.get(agent)),
        class_="writes",
    )


def _parts(components: Mapping[str, float]) -> Html | None:
    if not components:
        return None
    parts = [tag("span", f"{name} {number(value)}") for name, value in components.items()]
    return tag("p", parts, class_="parts")


def _diagnostics(facts: object) -> Html | None:
    if not facts:
        return None
    text = json.dumps(facts, indent=1, ensure_ascii=False, default=str)
    shown, note = _shorten(text)
    return tag("details", tag("summary", "diagnostics"), tag("pre", shown), note, class_="reads")


def _verdict(episode: Episode) -> Html:
    word, kind = ("✓ solved", "good") if episode.solved else ("not solved", "plain")
    return tag("span", word, class_=f"pill {kind}")

"""Pictures of a turn, such as worlds, workflows and boards, and the words of a judge."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mlrl_learners.report.board_picture import board_picture
from mlrl_learners.report.html import Html, isolated, tag
from mlrl_learners.report.judge_words import judge_words
from mlrl_learners.report.workflow_picture import workflow_picture
from mlrl_learners.report.world_picture import world_picture
from mlrl_learners.runs.stored import StoredTurn

__all__ = ["turn_pictures", "without_pictures", "workflow_of"]

_PICTURES: Mapping[str, Callable[[object], Html | None]] = {
    "world": world_picture,
    "workflow": workflow_picture,
    "judge": judge_words,
}


def workflow_of(turns: Sequence[StoredTurn]) -> Html | None:
    """Return the picture of the workflow that was played; None if there was none.

    The record is in the last turn of an episode of the wrapped environment.
    """
    facts = [each for turn in turns for each in turn.diagnostics.values()]
    drawn = [workflow_picture(each.get("workflow")) for each in facts if isinstance(each, Mapping)]
    found = [picture for picture in drawn if picture is not None]
    return tag("figure", found[-1], class_="world") if found else None


def turn_pictures(turn: StoredTurn, *, leave_out: Collection[str] = ()) -> list[Html]:
    """Show what the diagnostics and the boards in observations draw, equal ones once.

    Args:
        turn: The turn.
        leave_out: Names of diagnostics that are shown elsewhere.
    """
    facts = [each for each in turn.diagnostics.values() if isinstance(each, Mapping)]
    drawn = dict.fromkeys(
        draw(each.get(name))
        for each in facts
        for name, draw in _PICTURES.items()
        if name not in leave_out
    )
    seen: dict[Html, list[str]] = {}
    for agent, text in turn.observations.items():
        if (board := board_picture(text)) is not None:
            seen.setdefault(board, []).append(agent)
    boards = [
        tag("figure", board, tag("figcaption", "seen by ", isolated(", ".join(agents))),
            class_="world")
        for board, agents in seen.items()
    ]  # fmt: skip
    return [tag("figure", each, class_="world") for each in drawn if each is not None] + boards


def without_pictures(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the diagnostics that `turn_pictures` does not show."""
    return {
        name: value
        for name, value in facts.items()
        if name not in _PICTURES or _PICTURES[name](value) is None
    }

"""Pictures of a turn: the worlds that were built, and the boards that agents saw."""

from collections.abc import Mapping

from mlrl_learners.report.board_picture import board_picture
from mlrl_learners.report.html import Html, isolated, tag
from mlrl_learners.report.world_picture import world_picture
from mlrl_learners.runs.stored import StoredTurn

__all__ = ["turn_pictures"]


def turn_pictures(turn: StoredTurn) -> list[Html]:
    """Show the worlds in the diagnostics and the boards in the observations, equal ones once."""
    facts = [each for each in turn.diagnostics.values() if isinstance(each, Mapping)]
    worlds = dict.fromkeys(world_picture(each.get("world")) for each in facts)
    seen: dict[Html, list[str]] = {}
    for agent, text in turn.observations.items():
        if (board := board_picture(text)) is not None:
            seen.setdefault(board, []).append(agent)
    boards = [
        tag("figure", board, tag("figcaption", "seen by ", isolated(", ".join(agents))),
            class_="world")
        for board, agents in seen.items()
    ]  # fmt: skip
    return [tag("figure", each, class_="world") for each in worlds if each is not None] + boards

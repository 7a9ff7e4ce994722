"""An opened episode and the addresses that lead from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mlrl_learners.monitor.index import IndexEntry
from mlrl_learners.monitor.pages.layout import address
from mlrl_learners.monitor.query import Query
from mlrl_learners.runs.stored import StoredTurn
from mlrl_learners.runs.summaries import TreeLevel

__all__ = ["OpenedEpisode", "agents_of", "colors_of"]

_COLORS = 8


@dataclass(frozen=True)
class OpenedEpisode:
    """An episode and the list from which it was opened.

    Attributes:
        run: Name of the run.
        query: Query of the list.
        entry: The episode in the index.
        seed: Its seed; None if unknown.
        levels: Turns on the chosen path through its tree.
        before: Key of the previous episode of the list; None if there is none.
        after: Key of the next episode of the list; None if there is none.
        opponents: Names of its opponents, by the agent that they play.
        page_start: Position in the list at which its page begins.
        nearby: Episodes about it on the list, each with the beginning of its first answer.
        others: Names of the other runs.
        path: The chosen path through its tree.
    """

    run: str
    query: Query
    entry: IndexEntry
    seed: int | None
    levels: Sequence[TreeLevel]
    before: str | None
    after: str | None
    opponents: Mapping[str, str] = field(default_factory=dict)
    page_start: int = 0
    nearby: Sequence[tuple[IndexEntry, str]] = ()
    others: Sequence[str] = ()
    path: Sequence[int] = ()

    def words(self) -> list[tuple[str, object]]:
        """Return the query of the page of the list."""
        start: list[tuple[str, object]] = [("at", self.page_start)] if self.page_start else []
        return [("run", self.run), *self.query.words().items(), *start]

    def at(self, key: str, path: Sequence[int] = ()) -> str:
        """Return the address of an episode of the list, or of a path through its tree."""
        return address("/episode", [*self.words(), ("key", key), *_way(path)])

    def same(self, page: str) -> str:
        """Return the address of this episode on another page, such as its text."""
        words = [("run", self.run), ("source", self.query.source), ("key", self.entry.key)]
        return address(page, [*words, *_way(self.path)])


def agents_of(turn: StoredTurn) -> list[str]:
    """Return the agents of a turn: first those that acted."""
    return list(dict.fromkeys([*turn.observations, *turn.actions, *turn.waiting]))


def colors_of(turns: Iterable[StoredTurn]) -> dict[str, int]:
    """Return agent -> colour, the same in every turn whoever acts in it."""
    agents = dict.fromkeys(agent for turn in turns for agent in agents_of(turn))
    return {agent: index % _COLORS for index, agent in enumerate(agents)}


def _way(path: Sequence[int]) -> list[tuple[str, object]]:
    return [("path", ".".join(map(str, path)))] if path else []

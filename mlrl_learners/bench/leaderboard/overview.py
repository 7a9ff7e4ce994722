"""Top of the leaderboard: a sentence with the main result, and a table of suites by actor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.bench.leaderboard.rows import WHOLE, LeaderboardGroup, LeaderboardRow

__all__ = ["Cell", "main_result", "overview_columns", "overview_rows"]

_SHADES = 4


@dataclass(frozen=True)
class Cell:
    """One figure of the table.

    Attributes:
        row: The result.
        shade: Its place between 0 and the best result that is no bound, in [0, 4].
        is_best: Whether no other actor earned more; bounds do not count.
    """

    row: LeaderboardRow
    shade: int
    is_best: bool


def overview_columns(groups: Sequence[LeaderboardGroup]) -> list[LeaderboardGroup]:
    """Return the groups that the page shows at first, those with a trained actor before others."""
    main = [group for group in groups if group.is_main]
    return sorted(main, key=lambda group: not any(row.is_trained for row in group.rows))


def overview_rows(groups: Sequence[LeaderboardGroup]) -> Mapping[str, Mapping[str, Cell]]:
    """Return actor -> slug of a group -> its cell: trained actors, then others, then bounds."""
    found: dict[str, dict[str, Cell]] = {}
    for group in overview_columns(groups):
        best = max((row.mean for row in group.rows if not row.bound), default=0.0)
        for row in group.rows:
            share = row.mean / best if best > 0 else 0.0
            shade = 0 if row.bound else max(0, min(_SHADES, int(share * _SHADES)))
            is_best = not row.bound and row.mean == best > 0
            found.setdefault(row.actor, {})[group.slug] = Cell(row, shade, is_best)

    def place(actor: str) -> tuple[bool, bool, float]:
        rows = [cell.row for cell in found[actor].values()]
        mean = sum(row.mean for row in rows) / len(rows)
        return (bool(rows[0].bound), not rows[0].is_trained, -mean)

    return {actor: found[actor] for actor in sorted(found, key=place)}


def main_result(groups: Sequence[LeaderboardGroup]) -> str | None:
    """Return a sentence on the entry in which training gains most; None without trained actors."""
    pairs = []
    for group in groups:
        trained = max((row for row in group.rows if row.is_trained), key=_mean, default=None)
        rivals = [row for row in group.rows if not (row.is_trained or row.bound)]
        if group.entry != WHOLE and trained is not None and rivals:
            pairs.append((trained, max(rivals, key=_mean), group.entry))
    if not pairs:
        return None
    ours, rival, entry = max(pairs, key=lambda pair: pair[0].mean - pair[1].mean)
    return (
        f"{_method(ours)} earns {_figure(ours)} on {entry}, "
        f"the best untrained team ({rival.actor}) {_figure(rival)}{_overlap(ours, rival)}."
    )


def _overlap(one: LeaderboardRow, other: LeaderboardRow) -> str:
    """Return what a sentence adds if two intervals overlap, so that the order may be chance."""
    if one.interval is None or other.interval is None:
        return ""
    overlaps = one.interval[0] <= other.interval[1] and other.interval[0] <= one.interval[1]
    return "; the intervals overlap" if overlaps else ""


def _method(row: LeaderboardRow) -> str:
    """Return how a sentence begins that is about a trained team."""
    method = row.actor.removeprefix("trained: ")
    return f"A team trained with {method}"


def _figure(row: LeaderboardRow) -> str:
    if row.interval is None:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} (95 %: {row.interval[0]:.3f} to {row.interval[1]:.3f})"


def _mean(row: LeaderboardRow) -> float:
    return row.mean

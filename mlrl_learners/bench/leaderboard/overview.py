"""Top of the leaderboard: a sentence with the main result, and a table of suites by actor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlrl_learners.bench.leaderboard.actor_details import counted
from mlrl_learners.bench.leaderboard.rows import WHOLE, LeaderboardGroup, LeaderboardRow

__all__ = ["Cell", "counted_runs", "main_result", "overview_columns", "overview_rows"]

_SHADES = 4


@dataclass(frozen=True)
class Cell:
    """One figure of the table.

    Attributes:
        row: The result.
        shade: Its place between 0 and the best complete result that is no bound, in [0, 4].
        is_best: Whether it is complete and no other actor earned more; bounds and incomplete
            results do not count.
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
        best = max((row.mean for row in _judged(group)), default=0.0)
        for row in group.rows:
            share = row.mean / best if best > 0 else 0.0
            shade = 0 if row.bound else max(0, min(_SHADES, int(share * _SHADES)))
            is_best = row in _judged(group) and row.mean == best > 0
            found.setdefault(row.actor, {})[group.slug] = Cell(row, shade, is_best)

    def place(actor: str) -> tuple[bool, bool, float]:
        rows = [cell.row for cell in found[actor].values()]
        mean = sum(row.mean for row in rows) / len(rows)
        return (bool(rows[0].bound), not rows[0].is_trained, -mean)

    return {actor: found[actor] for actor in sorted(found, key=place)}


def main_result(groups: Sequence[LeaderboardGroup]) -> str | None:
    """Return a sentence on the entry in which training gains most; None without trained actors.

    It compares the best of the trained actors with the best of the others, says of how many each is
    the best, and takes complete results only.
    """
    compared = [_Compared.of(group) for group in groups if group.entry != WHOLE]
    compared = [each for each in compared if each.trained and each.others]
    if not compared:
        return None
    most = max(compared, key=lambda each: each.trained[0].mean - each.others[0].mean)
    place = (
        f"where training gains most of {len(compared)} environments"
        if len(compared) > 1
        else "the only environment with results of trained and untrained actors"
    )
    ours, other = most.trained[0], most.others[0]
    return (
        f"On {most.entry}, {place}, {_named(most.trained, 'trained')} earns {_figure(ours)}, "
        f"and {_named(most.others, 'untrained')} {_figure(other)}{_overlap(ours, other)}."
    )


def counted_runs(row: LeaderboardRow, form: str) -> str:
    """Return the number of training runs of a row in a form, such as " (3 runs)"; "" without."""
    return form.format(counted(row.runs, "run")) if row.runs else ""


@dataclass(frozen=True)
class _Compared:
    """The complete results of a group that are no bounds, in descending order of the mean."""

    entry: str
    trained: Sequence[LeaderboardRow]
    others: Sequence[LeaderboardRow]

    @classmethod
    def of(cls, group: LeaderboardGroup) -> "_Compared":
        rows = sorted(_judged(group), key=lambda row: -row.mean)
        trained = [row for row in rows if row.is_trained]
        return cls(group.entry, trained, [row for row in rows if not row.is_trained])


def _judged(group: LeaderboardGroup) -> list[LeaderboardRow]:
    """Return the rows among which one is the best."""
    return [row for row in group.rows if row.is_complete and not row.bound]


def _overlap(one: LeaderboardRow, other: LeaderboardRow) -> str:
    """Return what a sentence adds if two intervals overlap, so that the order may be chance."""
    if one.interval is None or other.interval is None:
        return ""
    overlaps = one.interval[0] <= other.interval[1] and other.interval[0] <= one.interval[1]
    return "; the intervals overlap" if overlaps else ""


def _named(rows: Sequence[LeaderboardRow], kind: str) -> str:
    """Return how a sentence names the best of some rows, the first."""
    name = rows[0].actor.removeprefix("trained: ") + counted_runs(rows[0], " ({})")
    return (
        f"the {kind} actor {name}"
        if len(rows) == 1
        else f"the best of {len(rows)} {kind} actors, {name},"
    )


def _figure(row: LeaderboardRow) -> str:
    if row.interval is None:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} (95 %: {row.interval[0]:.3f} to {row.interval[1]:.3f})"

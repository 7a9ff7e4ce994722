"""Items to divide, private values, and measures of a division.

A bundle is a tuple with the number of each item; a division has a bundle for each agent.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from random import Random

from mlrl_envs.games.chance import below
from mlrl_envs.games.outcomes import welfare

__all__ = [
    "ITEMS",
    "TOTAL",
    "Bundle",
    "best_division",
    "divisions",
    "draw_counts",
    "draw_values",
    "efficiency",
    "envy",
    "fits",
    "is_pareto",
    "worth",
]

ITEMS = ("books", "hats", "balls")
TOTAL = 10
"""Worth of all items together to every agent."""

Bundle = tuple[int, ...]


def worth(bundle: Bundle, values: Bundle) -> int:
    """Return what a bundle is worth by the values of single items."""
    return sum(map(int.__mul__, bundle, values))


def draw_counts(rng: Random) -> Bundle:
    """Draw 5 to 7 items, at least one of each kind."""
    counts = [1] * len(ITEMS)
    for _ in range(2 + below(3, rng)):
        counts[below(len(ITEMS), rng)] += 1
    return tuple(counts)


def draw_values(counts: Bundle, players: int, rng: Random) -> tuple[Bundle, ...]:
    """Draw values with the same total for every player.

    Every item is worth something to somebody, and some item to two players at least.
    """
    options = _all_values(counts)
    while True:
        values = tuple(options[below(len(options), rng)] for _ in range(players))
        wanted = [sum(row[item] > 0 for row in values) for item in range(len(ITEMS))]
        if min(wanted) >= 1 and max(wanted) > 1:
            return values


def fits(demands: Sequence[Bundle], counts: Bundle) -> bool:
    """Return whether there are enough items for all demands."""
    return all(
        sum(column) <= count
        for column, count in zip(zip(*demands, strict=True), counts, strict=True)
    )


@functools.lru_cache(maxsize=256)
def divisions(counts: Bundle, players: int) -> tuple[tuple[Bundle, ...], ...]:
    """Return all divisions that give every item to somebody."""
    columns = [list(_shares(count, players)) for count in counts]
    return tuple(tuple(zip(*shares, strict=True)) for shares in itertools.product(*columns))


@functools.lru_cache(maxsize=4096)
def best_division(counts: Bundle, values: tuple[Bundle, ...]) -> tuple[Bundle, ...]:
    """Return the division with the largest product of worths (Nash bargaining solution).

    Of equal products the largest sum counts, then the first division.
    """

    def rank(division: tuple[Bundle, ...]) -> tuple[int, int]:
        worths = list(map(worth, division, values))
        return math.prod(worths), sum(worths)

    return max(divisions(counts, len(values)), key=rank)


def is_pareto(division: Sequence[Bundle], counts: Bundle, values: tuple[Bundle, ...]) -> bool:
    """Return whether no division is better for somebody and worse for nobody."""
    now = tuple(map(worth, division, values))
    for other in divisions(counts, len(values)):
        then = tuple(map(worth, other, values))
        if then != now and all(map(int.__ge__, then, now)):
            return False
    return True


def efficiency(division: Sequence[Bundle], counts: Bundle, values: tuple[Bundle, ...]) -> float:
    """Return the sum of worths over the largest possible sum."""
    columns = zip(*values, strict=True)
    best = sum(count * max(row) for count, row in zip(counts, columns, strict=True))
    return int(sum(map(worth, division, values))) / int(best)


def envy(division: Sequence[Bundle], values: Sequence[Bundle]) -> float:
    """Return the mean over agents of what they miss to the bundle they like best, 0 to 1."""
    missing = {
        str(agent): max(worth(bundle, row) for bundle in division) - worth(division[agent], row)
        for agent, row in enumerate(values)
    }
    return welfare(missing) / TOTAL


@functools.lru_cache(maxsize=256)
def _all_values(counts: Bundle) -> tuple[Bundle, ...]:
    ranges = [range(TOTAL // count + 1) for count in counts]
    return tuple(row for row in itertools.product(*ranges) if worth(counts, row) == TOTAL)


def _shares(count: int, players: int) -> Iterator[tuple[int, ...]]:
    if players == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in _shares(count - first, players - 1):
            yield (first, *rest)

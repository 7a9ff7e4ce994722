"""Members of a mixture, and the order of their tasks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.types import TextEnv

__all__ = ["Member", "checked", "interleaved"]


@dataclass(frozen=True)
class Member:
    """An environment of a mixture.

    Attributes:
        name: Name in task ids, infos and metrics; contains no `/`.
        env: The environment; each episode plays a copy.
        weight: Share of the episodes, relative to the other members; above 0.
    """

    name: str
    env: TextEnv
    weight: float = 1.0

    @property
    def num_tasks(self) -> int:
        """Number of tasks; 1 for environments that choose tasks by seed."""
        return int(getattr(self.env, "num_tasks", 1))


def checked(members: Sequence[Member]) -> tuple[Member, ...]:
    """Return the members of a mixture.

    Raises:
        InvalidArgumentError: If there is no member, two have the same name, or a weight is not
            above 0.
    """
    names: set[str] = set()
    for each in members:
        if not isinstance(each.name, str) or not each.name or "/" in each.name:
            raise InvalidArgumentError(f"an environment's name has no /, got {each.name!r}")
        if each.name in names:
            raise InvalidArgumentError(f"two environments are {each.name!r}: give each a name")
        names.add(each.name)
        weight = each.weight
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not (0 < weight < math.inf):
            raise InvalidArgumentError(f"weight of {each.name!r} must be above 0, got {weight!r}")
    if not names:
        raise InvalidArgumentError("a mixture needs at least one environment")
    return tuple(members)


def interleaved(parts: Sequence[tuple[int, float]]) -> list[tuple[int, int]]:
    """Return all (member, task) pairs, interleaved in proportion to the members' weights."""
    places = [
        ((task + 0.5) / weight, number, task)
        for number, (num_tasks, weight) in enumerate(parts)
        for task in range(num_tasks)
    ]
    return [(number, task) for _, number, task in sorted(places)]

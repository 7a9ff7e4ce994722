"""Seeds and task order of a run, as functions of its seed and of counts."""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MOST_SEED", "CallSeeds", "derive_seed", "task_indices", "weighted_indices"]

MOST_SEED = 2**63 - 1
"""Largest seed of a generator of torch."""

LEAST_SLOTS = 1000  # of a round, so that shares are exact to a thousandth


@dataclass
class CallSeeds:
    """Seeds of the prompts of successive calls.

    The seed of a prompt depends on nothing but the attributes and its number within the call, so
    any process can sample it, in any order.

    Attributes:
        seed: Seed of all calls.
        calls: Number of calls so far.
    """

    seed: int
    calls: int = 0

    def next(self, num_prompts: int) -> list[int]:
        """Return the seed of each prompt of the next call."""
        self.calls += 1
        return [derive_seed(self.seed, self.calls, number) for number in range(num_prompts)]


def task_indices(num_tasks: int, per_iteration: int, iteration: int, seed: int) -> list[int]:
    """Return the tasks of one iteration: every task once per epoch, each epoch in a new order.

    Args:
        num_tasks: Number of tasks in the split, at least 1.
        per_iteration: Number of tasks per iteration.
        iteration: Index of the iteration, from 1.
        seed: Seed of the orders.
    """
    first = (iteration - 1) * per_iteration
    places = (divmod(position, num_tasks) for position in range(first, first + per_iteration))
    return [_epoch_order(num_tasks, seed, epoch)[place] for epoch, place in places]


@functools.lru_cache(maxsize=32)
def _epoch_order(num_tasks: int, seed: int, epoch: int) -> Sequence[int]:
    """Return the order of an epoch. It is kept, as shuffling costs time in each iteration."""
    order = list(range(num_tasks))
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311 - reproducible
    return order


def weighted_indices(
    groups: Sequence[tuple[float, Sequence[int]]], per_iteration: int, iteration: int, seed: int
) -> list[int]:
    """Return the tasks of one iteration where groups of tasks have weights.

    Groups take turns as evenly as their weights allow; the tasks of each are drawn as in
    `task_indices`.

    Args:
        groups: Weight, above 0, and tasks, at least one, of each group.
        per_iteration: Number of tasks per iteration.
        iteration: Index of the iteration, from 1.
        seed: Seed of the orders.
    """
    num_tasks = sum(len(tasks) for _, tasks in groups)
    slots, sizes = _slots(tuple(weight for weight, _ in groups), num_tasks)
    first = (iteration - 1) * per_iteration
    indices = []
    for position in range(first, first + per_iteration):
        turn, place = divmod(position, len(slots))
        group, number = slots[place]
        tasks = groups[group][1]
        (index,) = task_indices(len(tasks), 1, turn * sizes[group] + number + 1, seed)
        indices.append(tasks[index])
    return indices


@functools.lru_cache(maxsize=8)
def _slots(
    weights: tuple[float, ...], num_tasks: int
) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """Return a round: each slot's group and number among its group's; and the groups' sizes."""
    total = max(LEAST_SLOTS, num_tasks)
    sizes = tuple(max(1, round(total * weight / sum(weights))) for weight in weights)
    places = [
        ((number + 0.5) / size, group, number)
        for group, size in enumerate(sizes)
        for number in range(size)
    ]
    return [(group, number) for _, group, number in sorted(places)], sizes


def derive_seed(*parts: int) -> int:
    """Return a seed in [0, 2**31) that depends on all parts."""
    return random.Random("/".join(map(str, parts))).getrandbits(31)  # noqa: S311 - reproducible

"""Seeds and task order of a run as pure functions of its seed, without state to save."""

import random

__all__ = ["derive_seed", "task_indices"]


def task_indices(num_tasks: int, per_iteration: int, iteration: int, seed: int) -> list[int]:
    """Return the tasks of one iteration: every task once per epoch, each epoch in a new order.

    Args:
        num_tasks: Number of tasks in the split, at least 1.
        per_iteration: Number of tasks per iteration.
        iteration: Index of the iteration, from 1.
        seed: Seed of the orders.
    """
    first = (iteration - 1) * per_iteration
    orders: dict[int, list[int]] = {}
    indices = []
    for position in range(first, first + per_iteration):
        epoch, place = divmod(position, num_tasks)
        if epoch not in orders:
            orders[epoch] = list(range(num_tasks))
            random.Random(f"{seed}/{epoch}").shuffle(orders[epoch])  # noqa: S311 - reproducible
        indices.append(orders[epoch][place])
    return indices


def derive_seed(*parts: int) -> int:
    """Return a seed in [0, 2**31) that depends on all parts."""
    return random.Random("/".join(map(str, parts))).getrandbits(31)  # noqa: S311 - reproducible

"""What is random about a run, as pure functions of its seed: there is nothing to save."""

import random

__all__ = ["derive_seed", "task_indices"]


def task_indices(num_tasks: int, per_iteration: int, iteration: int, seed: int) -> list[int]:
    """Return the tasks of one iteration: every task once an epoch, each epoch in a new order.

    A pure function of its arguments, so a resumed run needs no memory of the order.

    Args:
        num_tasks: Tasks in the split.
        per_iteration: Tasks an iteration.
        iteration: Counted from 1.
        seed: Decides the orders.
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
    """Return a seed that differs wherever any part differs, in [0, 2**31)."""
    return random.Random("/".join(map(str, parts))).getrandbits(31)  # noqa: S311 - reproducible

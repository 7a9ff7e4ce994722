"""Assignment of the methods of a class to coders, a pure function of the task."""

from collections.abc import Callable, Sequence

from mlrl_envs.errors import unknown_name
from mlrl_envs.tasks import Method

__all__ = ["ASSIGNMENTS", "assign", "balanced", "by_parameter_count"]

Assignment = Callable[[Sequence[Method], int], list[list[str]]]


def balanced(methods: Sequence[Method], num_coders: int) -> list[list[str]]:
    """Assign methods so that the number of characters to write is balanced.

    In the order of decreasing length, each method is assigned to the coder with the lowest load.
    Every coder has a method if there are enough, and loads differ by at most one method.
    """
    loads = [0] * num_coders
    shares: list[set[str]] = [set() for _ in range(num_coders)]
    for method in sorted(methods, key=lambda method: -method.size):
        least = loads.index(min(loads))
        loads[least] += method.size
        shares[least].add(method.name)
    return [[m.name for m in methods if m.name in share] for share in shares]


def by_parameter_count(methods: Sequence[Method], num_coders: int) -> list[list[str]]:
    """Assign methods by their number of parameters, as published for two coders.

    Methods without parameters other than `self` are assigned to the first coder, all others to the
    second. With more coders, methods with one parameter go to the second and so on; the last coder
    has the rest.
    """
    shares: list[list[str]] = [[] for _ in range(num_coders)]
    for method in methods:
        beyond_self = max(method.num_parameters - 1, 0)
        shares[min(beyond_self, num_coders - 1)].append(method.name)
    return shares


ASSIGNMENTS: dict[str, Assignment] = {
    "balanced": balanced,
    "by_parameter_count": by_parameter_count,
}


def assign(kind: str, methods: Sequence[Method], num_coders: int) -> dict[str, tuple[str, ...]]:
    """Return the methods of each of `coder_1` ... `coder_N`, in the order of the class.

    Raises:
        UnknownNameError: If there is no such assignment.
    """
    if kind not in ASSIGNMENTS:
        raise unknown_name("assignment", kind, ASSIGNMENTS)
    shares = ASSIGNMENTS[kind](methods, num_coders)
    return {f"coder_{number}": tuple(share) for number, share in enumerate(shares, start=1)}

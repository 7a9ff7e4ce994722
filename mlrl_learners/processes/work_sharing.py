"""Work sharing between the processes that train one learner.

`torchrun` and `accelerate launch` start the same program several times. All processes make the same
decisions from the same numbers; costly work is divided between them and the results are sent to
all. Ranks are used in this package only; in a single process every function here returns its
argument, and torch is not imported.

An error in one process ends all of them at the next exchange. Every synchronisation uses
`exchange`, whose messages also carry errors; sums of tensors are preceded by an exchange.

Not covered: processes with different roles, such as one that only collects rollouts.
"""

import atexit
import contextlib
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mlrl_learners.errors import PeerError
from mlrl_learners.processes.process_group import (
    ProcessGroup,
    World,
    alone,
    peer_errors,
    wait_seconds,
    world,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "World",
    "alone",
    "broadcast",
    "deal",
    "exchange",
    "finish",
    "gather",
    "gather_tensor",
    "is_main",
    "peer_errors",
    "share",
    "spread",
    "start",
    "sum_numbers",
    "sum_tensors",
    "together",
    "world",
]

K = TypeVar("K", int, tuple[int, int])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Failure:
    """Message of a process that ends with an error.

    Attributes:
        line: The error message, as one line.
    """

    line: str


def is_main() -> bool:
    """Return whether this process writes files, which is rank 0."""
    return world().rank == 0


def start() -> None:
    """Join the process group, and select a GPU if there are several.

    Further calls have no effect.

    Raises:
        PeerError: If the other processes do not join in time.
        ConfigError: If the time limit is not a number.
    """
    if world().size > 1:
        _process_group()


def finish() -> None:
    """Leave the process group at the end of the program."""
    if world().size > 1 and _process_group.cache_info().currsize:
        group = _process_group()
        _process_group.cache_clear()  # torch's groups must be deleted before the interpreter exits
        atexit.unregister(finish)
        group.end()


def exchange(value: T) -> list[T]:
    """Send `value` to all processes and return their values, by rank.

    Args:
        value: Any object that can be pickled.

    Raises:
        PeerError: If another process failed, ended, or did not answer in time.
    """
    if world().size == 1:
        return [value]
    messages = _process_group().gather(value)
    for rank, message in enumerate(messages):
        if isinstance(message, _Failure):
            raise PeerError(f"process {rank}: {message.line}")
    return messages


def gather(found: Mapping[K, T]) -> dict[K, T]:
    """Return the results of all processes, sorted by number.

    Args:
        found: Results of this process, by numbers, or pairs of them, that no other process has.

    Raises:
        PeerError: If another process failed, ended, or did not answer in time.
    """
    merged: dict[K, T] = {}
    for part in exchange(dict(found)):
        merged |= part
    return dict(sorted(merged.items()))


def deal(costs: Sequence[float]) -> list[list[int]]:
    """Return the pieces of work of each process, by rank; every piece has one process.

    The pieces are assigned in the order of decreasing cost, each to the process with the lowest
    load. All processes compute the same assignment without an exchange.

    Args:
        costs: Cost of each piece, in any unit.
    """
    loads = [0.0] * world().size
    shares: list[list[int]] = [[] for _ in loads]
    for piece in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        rank = loads.index(min(loads))
        loads[rank] += costs[piece]
        shares[rank].append(piece)
    return [sorted(mine) for mine in shares]


def share(costs: Sequence[float]) -> list[int]:
    """Return the pieces of work of this process, see `deal`."""
    return deal(costs)[world().rank]


def spread(costs: Sequence[float], work: Callable[[list[int]], Mapping[int, T]]) -> list[T]:
    """Divide work between the processes and return all results, in order, in every process.

    Args:
        costs: Cost of each piece, in any unit.
        work: Function of the numbers of some pieces that returns the result of each.

    Raises:
        PeerError: If another process failed, ended, or did not answer in time.
    """
    results = gather(work(share(costs)))
    return [results[piece] for piece in range(len(costs))]


def sum_numbers(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the sums over processes by name, including names that some processes lack.

    The result is a `defaultdict`: absent names read as 0.
    """
    sums: dict[str, float] = defaultdict(float)
    for part in exchange(dict(numbers)):
        for name, value in part.items():
            sums[name] += value
    return sums


def sum_tensors(tensors: Sequence["Tensor"]) -> None:
    """Replace each tensor by its sum over processes; shapes must be the same in all of them.

    Raises:
        PeerError: If another process failed, ended, or did not answer in time.
    """
    if world().size == 1 or not tensors:
        return
    exchange(None)
    _process_group().reduce(tensors)


def gather_tensor(tensor: "Tensor") -> list["Tensor"]:
    """Return the tensors of all processes, by rank; shapes must be the same in all of them.

    Must follow an `exchange`, which raises the errors of other processes.

    Raises:
        PeerError: If another process ended, or did not answer in time.
    """
    if world().size == 1:
        return [tensor]
    return _process_group().gather_tensor(tensor.contiguous())


def broadcast(tensors: Sequence["Tensor"]) -> None:
    """Replace each tensor by that of rank 0.

    Raises:
        PeerError: If another process failed, ended, or did not answer in time.
    """
    if world().size == 1 or not tensors:
        return
    exchange(None)
    _process_group().broadcast(tensors)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Propagate an error inside the block from one process to all of them.

    An error that occurs in all processes is raised unchanged in the first and as a `PeerError` in
    the others, so that it is reported once.
    """
    try:
        yield
    except PeerError:
        raise
    except BaseException as error:
        if world().size == 1 or getattr(error, "was_announced", False):
            raise
        error.was_announced = True  # type: ignore[attr-defined]
        line = _line(error)
        messages = _process_group().announce_end(_Failure(line))
        if _Failure(line) in messages[: world().rank]:
            raise PeerError(f"process {messages.index(_Failure(line))}: {line}") from error
        raise


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@functools.cache
def _process_group() -> ProcessGroup:
    group = ProcessGroup(world(), wait_seconds())
    atexit.register(finish)  # the group must end before the interpreter, also after an error
    return group

"""Several processes that train one learner: who is who, and how they share the work.

`torchrun` and `accelerate launch` start the same program several times. All of its processes take
the same decisions from the same numbers: what is costly is spread over them, and the outcomes are
brought to all. Only the modules of this package know of ranks; in one process every function here
returns what it was given, and torch is not imported.

An error in one process reaches the others at the next point where they meet, so that all of them
end. Every meeting goes through `exchange`, whose messages carry errors too; where tensors are
summed, an exchange comes first.

Not covered: processes that do different things, such as one that only plays.
"""

import atexit
import contextlib
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mlrl_learners.errors import PeerError
from mlrl_learners.processes.process_group import Meeting, World, patience, wait_seconds, world

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "World",
    "broadcast",
    "deal",
    "exchange",
    "finish",
    "gather",
    "is_main",
    "patience",
    "share",
    "spread",
    "start",
    "sum_numbers",
    "sum_tensors",
    "together",
    "world",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a process says that is about to end."""

    line: str


def is_main() -> bool:
    """Return whether this is the process that writes."""
    return world().rank == 0


def start() -> None:
    """Meet the other processes, and take a GPU of one's own where there are several.

    Called by whoever shares work first; calling it again does nothing.

    Raises:
        PeerError: If they do not come in time.
        ConfigError: If the waiting time is no number.
    """
    if world().size > 1:
        _meeting()


def finish() -> None:
    """Part from the other processes, when all is done."""
    if world().size > 1 and _meeting.cache_info().currsize:
        meeting = _meeting()
        _meeting.cache_clear()  # torch's groups must be gone before the interpreter is
        atexit.unregister(finish)
        meeting.end()


def exchange(value: T) -> list[T]:
    """Give `value` to all processes and return theirs, by rank.

    Args:
        value: Anything that can be pickled.

    Raises:
        PeerError: If another process failed, ended, or does not come in time.
    """
    if world().size == 1:
        return [value]
    messages = _meeting().gather(value)
    for rank, message in enumerate(messages):
        if isinstance(message, _Failure):
            raise PeerError(f"process {rank}: {message.line}")
    return messages


def gather(found: Mapping[int, T]) -> dict[int, T]:
    """Return what all processes have found, each by a number that no other has, in order.

    Raises:
        PeerError: If another process failed, ended, or does not come in time.
    """
    merged: dict[int, T] = {}
    for part in exchange(dict(found)):
        merged |= part
    return dict(sorted(merged.items()))


def deal(costs: Sequence[float]) -> list[list[int]]:
    """Return which pieces of work are whose, by rank and in order: every piece is exactly one's.

    The dearest piece goes first, each to whoever has least so far; all processes come to the same
    division without a word.
    """
    loads = [0.0] * world().size
    shares: list[list[int]] = [[] for _ in loads]
    for piece in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        rank = loads.index(min(loads))
        loads[rank] += costs[piece]
        shares[rank].append(piece)
    return [sorted(mine) for mine in shares]


def share(costs: Sequence[float]) -> list[int]:
    """Return which pieces of work are this process's, see `deal`."""
    return deal(costs)[world().rank]


def spread(costs: Sequence[float], work: Callable[[list[int]], Mapping[int, T]]) -> list[T]:
    """Do every piece of work in one of the processes; return all outcomes in order, to all.

    Args:
        costs: What each piece costs, in any unit.
        work: Takes the numbers of some pieces and returns the outcome of each.

    Raises:
        PeerError: If another process failed, ended, or does not come in time.
    """
    outcomes = gather(work(share(costs)))
    return [outcomes[piece] for piece in range(len(costs))]


def sum_numbers(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the sums over processes by name, names that some of them lack included.

    In one process the result is what was given; absent names read as 0, as in a `defaultdict`.
    """
    sums: dict[str, float] = defaultdict(float)
    for part in exchange(dict(numbers)):
        for name, value in part.items():
            sums[name] += value
    return sums


def sum_tensors(tensors: Sequence["Tensor"]) -> None:
    """Replace each tensor by its sum over processes; all must bring the same shapes.

    Raises:
        PeerError: If another process failed, ended, or does not come in time.
    """
    if world().size == 1 or not tensors:
        return
    exchange(None)
    _meeting().reduce(tensors)


def broadcast(tensors: Sequence["Tensor"]) -> None:
    """Replace each tensor by that of the first process.

    Raises:
        PeerError: If another process failed, ended, or does not come in time.
    """
    if world().size == 1 or not tensors:
        return
    exchange(None)
    _meeting().broadcast(tensors)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let what ends the block in one process by an error end it in all of them.

    An error that all of them come upon is raised as it is in the first, and as a `PeerError` in
    the others, so that it is told once.
    """
    try:
        yield
    except PeerError:
        raise
    except BaseException as error:
        if world().size == 1 or getattr(error, "was_told", False):
            raise
        error.was_told = True  # type: ignore[attr-defined]
        line = _line(error)
        told = _meeting().last_words(_Failure(line))
        if _Failure(line) in told[: world().rank]:
            raise PeerError(f"process {told.index(_Failure(line))}: {line}") from error
        raise


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@functools.cache
def _meeting() -> Meeting:
    meeting = Meeting(world(), wait_seconds())
    atexit.register(finish)  # whatever ends the program, the group ends before the interpreter
    return meeting

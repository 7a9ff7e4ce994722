"""Several processes that train one learner: who is who, and how they share the work.

`torchrun` and `accelerate launch` start the same program several times. All of its processes take
the same decisions from the same numbers: what is costly is spread over them, and the outcomes are
brought to all. This is the only module that knows of ranks; in one process every function here
returns what it was given, and torch is not imported.

An error in one process reaches the others at the next point where they meet, so that all of them
end. Every meeting goes through `exchange`, whose messages carry errors too; where tensors are
summed, an exchange comes first.

Not covered: processes that do different things, such as one that only plays.
"""

import contextlib
import functools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from mlrl_learners.errors import ConfigError, PeerError

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
    "share",
    "spread",
    "start",
    "sum_numbers",
    "sum_tensors",
    "together",
    "world",
]

T = TypeVar("T")
WAIT_VARIABLE = "MLRL_WAIT_SECONDS"
DEFAULT_WAIT_SECONDS = 1800.0
LAST_WORDS_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class World:
    """How many processes there are, and which this one is.

    Attributes:
        rank: Counted from 0; the first one writes.
        size: Processes on all machines.
        local_rank: Counted on this machine.
        local_size: Processes on this machine.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a process says that is about to end."""

    line: str


def world() -> World:
    """Return who this process is, from what its launcher put into the environment."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    numbers = [os.environ.get(name, "") for name in names]
    if not all(number.isdigit() for number in numbers[:2]) or int(numbers[1]) < 2:
        return World()
    rank, size = int(numbers[0]), int(numbers[1])
    return World(rank, size, int(numbers[2] or rank), int(numbers[3] or size))


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
        _meeting().end()
        _meeting.cache_clear()


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
def _meeting() -> "_Meeting":
    return _Meeting(world(), _wait_seconds())


def _wait_seconds() -> float:
    text = os.environ.get(WAIT_VARIABLE, "")
    try:
        seconds = float(text or DEFAULT_WAIT_SECONDS)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ConfigError(f"{WAIT_VARIABLE} must be a number above 0, got {text!r}")
    return seconds


class _Meeting:
    """The process group: messages go over gloo, tensors over what suits their device."""

    def __init__(self, here: World, wait_seconds: float) -> None:
        import torch
        from torch import distributed

        self._dist, self._wait_seconds = distributed, wait_seconds
        wait = timedelta(seconds=wait_seconds)
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if gpus:
            torch.cuda.set_device(here.local_rank % gpus)
        # NCCL refuses to give one GPU to two processes; gloo takes the way through the memory.
        backend = "cpu:gloo,cuda:nccl" if 0 < here.local_size <= gpus else "gloo"
        with self._patience():
            self._is_ours = not distributed.is_initialized()
            if self._is_ours:
                distributed.init_process_group(backend, timeout=wait)
            self._messages: Any = distributed.new_group(backend="gloo", timeout=wait)

    def gather(self, message: T) -> list[T]:
        messages: list[Any] = [None] * self._dist.get_world_size()
        with self._patience():
            self._dist.all_gather_object(messages, message, group=self._messages)
        return messages

    def last_words(self, message: _Failure) -> list[Any]:
        """Say why this process ends to whoever comes soon; the launcher ends the others."""
        told: list[Any] = []

        def tell() -> None:
            with contextlib.suppress(PeerError):
                told.extend(self.gather(message))

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        teller.join(min(LAST_WORDS_SECONDS, self._wait_seconds))
        return told

    def reduce(self, tensors: Sequence["Tensor"]) -> None:
        with self._patience():
            for work in [self._dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
                work.wait()

    def broadcast(self, tensors: Sequence["Tensor"]) -> None:
        with self._patience():
            for work in [self._dist.broadcast(tensor, 0, async_op=True) for tensor in tensors]:
                work.wait()

    def end(self) -> None:
        if self._is_ours:
            self._dist.destroy_process_group()

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """Turn what torch says of a lost or late process into a typed error."""
        try:
            yield
        except RuntimeError as error:  # torch's DistError is one
            reason = (str(error).splitlines() or [""])[0]
            raise PeerError(
                "another process of this run ended, or did not answer within "
                f"{self._wait_seconds:g} s ({WAIT_VARIABLE}): {reason}"
            ) from error

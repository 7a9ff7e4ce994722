"""Process group of a training run: ranks, and exchange of messages and tensors.

The public interface is `mlrl_learners.processes.work_sharing`. Torch is imported when a group is
joined.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from mlrl_learners.errors import ConfigError, PeerError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ProcessGroup", "World", "alone", "peer_errors", "wait_seconds", "world"]

T = TypeVar("T")
WAIT_VARIABLE = "MLRL_WAIT_SECONDS"
DEFAULT_WAIT_SECONDS = 1800.0
LAST_MESSAGE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class World:
    """Ranks of this process and numbers of processes.

    Attributes:
        rank: Rank among all processes, from 0; rank 0 writes files.
        size: Number of processes on all machines.
        local_rank: Rank among the processes of this machine, from 0.
        local_size: Number of processes on this machine.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


_works_alone = False


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let this process work as if it were the only one inside the block, in all of its threads.

    Nothing inside may need the other processes, such as sharded weights. An exchange must follow.
    """
    global _works_alone  # noqa: PLW0603 - of all threads
    before, _works_alone = _works_alone, True
    try:
        yield
    finally:
        _works_alone = before


def world() -> World:
    """Return the ranks of this process from the environment variables of its launcher."""
    if _works_alone:
        return World()
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    numbers = [os.environ.get(name, "") for name in names]
    if not all(number.isdigit() for number in numbers[:2]) or int(numbers[1]) < 2:
        return World()
    rank, size = int(numbers[0]), int(numbers[1])
    return World(rank, size, int(numbers[2] or rank), int(numbers[3] or size))


def wait_seconds() -> float:
    """Return the time limit of an exchange with other processes, in seconds.

    Raises:
        ConfigError: If the environment variable is not a number above 0.
    """
    text = os.environ.get(WAIT_VARIABLE, "")
    try:
        seconds = float(text or DEFAULT_WAIT_SECONDS)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ConfigError(f"{WAIT_VARIABLE} must be a number above 0, got {text!r}")
    return seconds


@contextlib.contextmanager
def peer_errors() -> Iterator[None]:
    """Convert torch's errors about a lost or late process inside the block into a `PeerError`."""
    try:
        yield
    except RuntimeError as error:  # base class of torch's DistError
        if world().size == 1 or type(error).__name__ == "OutOfMemoryError":
            raise
        reason = (str(error).splitlines() or [""])[0]
        raise PeerError(
            "another process of this run ended, or did not answer within "
            f"{wait_seconds():g} s ({WAIT_VARIABLE}): {reason}"
        ) from error


class ProcessGroup:
    """Group of processes: messages use gloo, tensors use the backend of their device.

    Args:
        here: Ranks of this process.
        wait_seconds: Time limit of every operation, above 0.

    Raises:
        PeerError: If another process ended or did not answer in time; also raised by all methods.
    """

    def __init__(self, here: World, wait_seconds: float) -> None:
        import torch
        from torch import distributed

        self._dist, self._wait_seconds = distributed, wait_seconds
        self._announcer: threading.Thread | None = None
        wait = timedelta(seconds=wait_seconds)
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if gpus:
            torch.cuda.set_device(here.local_rank % gpus)
        # NCCL does not allow two processes on one GPU; gloo copies tensors through CPU memory.
        backend = "cpu:gloo,cuda:nccl" if 0 < here.local_size <= gpus else "gloo"
        with peer_errors():
            self._is_ours = not distributed.is_initialized()
            if self._is_ours:
                distributed.init_process_group(backend, timeout=wait)
            self._messages: Any = distributed.new_group(backend="gloo", timeout=wait)

    def gather(self, message: T) -> list[T]:
        """Return the messages of all processes, by rank."""
        messages: list[Any] = [None] * self._dist.get_world_size()
        with peer_errors():
            self._dist.all_gather_object(messages, message, group=self._messages)
        return messages

    def announce_end(self, message: object) -> list[Any]:
        """Send the reason why this process ends, and return the messages of all processes.

        Waits a limited time for the others; returns an empty list if they do not answer. The
        launcher then terminates them.
        """
        messages: list[Any] = []

        def announce() -> None:
            with contextlib.suppress(PeerError):
                messages.extend(self.gather(message))

        self._announcer = threading.Thread(target=announce, daemon=True)
        self._announcer.start()
        self._announcer.join(min(LAST_MESSAGE_SECONDS, self._wait_seconds))
        return messages

    def reduce(self, tensors: Sequence["Tensor"]) -> None:
        """Replace each tensor by its sum over processes."""
        with peer_errors():
            for work in [self._dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
                work.wait()

    def gather_tensor(self, tensor: "Tensor") -> list["Tensor"]:
        """Return the tensors of all processes, by rank."""
        import torch

        found = [torch.empty_like(tensor) for _ in range(self._dist.get_world_size())]
        with peer_errors():
            self._dist.all_gather(found, tensor)
        return found

    def broadcast(self, tensors: Sequence["Tensor"]) -> None:
        """Replace each tensor by that of rank 0."""
        with peer_errors():
            for work in [self._dist.broadcast(tensor, 0, async_op=True) for tensor in tensors]:
                work.wait()

    def end(self) -> None:
        """Stop torch's threads, which would abort the process if they outlived the interpreter.

        If `announce_end` still waits for the others, its thread cannot be stopped; the process then
        exits at once, because it is ending with an error anyway.
        """
        if self._announcer is not None and self._announcer.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        if self._dist.is_initialized():
            self._dist.destroy_process_group(None if self._is_ours else self._messages)
        self._messages = None  # drops the last reference, which ends the group's threads

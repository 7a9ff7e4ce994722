"""Where several processes meet: who they are, and how messages and tensors go between them.

`mlrl_learners.processes.work_sharing` uses it. Torch is imported when a group is joined.
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

__all__ = ["Meeting", "World", "patience", "wait_seconds", "world"]

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


def world() -> World:
    """Return who this process is, from what its launcher put into the environment."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    numbers = [os.environ.get(name, "") for name in names]
    if not all(number.isdigit() for number in numbers[:2]) or int(numbers[1]) < 2:
        return World()
    rank, size = int(numbers[0]), int(numbers[1])
    return World(rank, size, int(numbers[2] or rank), int(numbers[3] or size))


def wait_seconds() -> float:
    """Return how long a process waits for another.

    Raises:
        ConfigError: If the environment variable is no number above 0.
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
def patience() -> Iterator[None]:
    """Turn what torch says of a lost or late process inside the block into a `PeerError`."""
    try:
        yield
    except RuntimeError as error:  # torch's DistError is one
        if world().size == 1 or type(error).__name__ == "OutOfMemoryError":
            raise
        reason = (str(error).splitlines() or [""])[0]
        raise PeerError(
            "another process of this run ended, or did not answer within "
            f"{wait_seconds():g} s ({WAIT_VARIABLE}): {reason}"
        ) from error


class Meeting:
    """The process group: messages go over gloo, tensors over what suits their device.

    Args:
        here: Who this process is.
        wait_seconds: How long it waits for the others, above 0.

    Raises:
        PeerError: Here and in all methods, if another process ended or does not come in time.
    """

    def __init__(self, here: World, wait_seconds: float) -> None:
        import torch
        from torch import distributed

        self._dist, self._wait_seconds = distributed, wait_seconds
        self._teller: threading.Thread | None = None
        wait = timedelta(seconds=wait_seconds)
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if gpus:
            torch.cuda.set_device(here.local_rank % gpus)
        # NCCL refuses to give one GPU to two processes; gloo takes the way through the memory.
        backend = "cpu:gloo,cuda:nccl" if 0 < here.local_size <= gpus else "gloo"
        with patience():
            self._is_ours = not distributed.is_initialized()
            if self._is_ours:
                distributed.init_process_group(backend, timeout=wait)
            self._messages: Any = distributed.new_group(backend="gloo", timeout=wait)

    def gather(self, message: T) -> list[T]:
        """Return what each process says, by rank."""
        messages: list[Any] = [None] * self._dist.get_world_size()
        with patience():
            self._dist.all_gather_object(messages, message, group=self._messages)
        return messages

    def last_words(self, message: object) -> list[Any]:
        """Say why this process ends to whoever comes soon; the launcher ends the others."""
        told: list[Any] = []

        def tell() -> None:
            with contextlib.suppress(PeerError):
                told.extend(self.gather(message))

        self._teller = threading.Thread(target=tell, daemon=True)
        self._teller.start()
        self._teller.join(min(LAST_WORDS_SECONDS, self._wait_seconds))
        return told

    def reduce(self, tensors: Sequence["Tensor"]) -> None:
        """Replace each tensor by its sum."""
        with patience():
            for work in [self._dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
                work.wait()

    def broadcast(self, tensors: Sequence["Tensor"]) -> None:
        """Replace each tensor by that of the first process."""
        with patience():
            for work in [self._dist.broadcast(tensor, 0, async_op=True) for tensor in tensors]:
                work.wait()

    def end(self) -> None:
        """Stop torch's threads: one that comes upon an interpreter at its end aborts the process.

        While last words still wait for a listener they cannot be stopped, and there was an error:
        the process ends here and now.
        """
        if self._teller is not None and self._teller.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        if self._dist.is_initialized():
            self._dist.destroy_process_group(None if self._is_ours else self._messages)
        self._messages = None  # the last reference: its threads end here, and not at some exit

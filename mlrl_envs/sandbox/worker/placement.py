"""Processor affinity: all processes of one program run on one core.

Judge, candidate and supervisor alternate, so a second core gives no speedup, and waking a process
on another core takes two to three times as long as on the same one. The kernel chooses the core
of the supervisor; at the start of each program the other processes move to that core.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import TypeAlias

from mlrl_envs.sandbox.jail.syscalls import library

__all__ = ["ANY_CORE", "Affinity", "Core", "current_core", "running_on"]

Core: TypeAlias = bytes  # two bytes, big-endian
ANY_CORE: Core = b"\xff\xff"


def current_core() -> Core:
    """Return the core that this process runs on, `ANY_CORE` if the system does not say."""
    return _getcpu().to_bytes(2, "big") if _getcpu is not None else ANY_CORE


@contextlib.contextmanager
def running_on(core: Core) -> Iterator[None]:
    """Bind this process to a core in the body; a refusal is ignored."""
    if core == ANY_CORE:
        yield
        return
    allowed = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {int.from_bytes(core, "big")})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed)


class Affinity:
    """Processor affinity of this process and of the processes that it forks."""

    def __init__(self) -> None:
        self._core = ANY_CORE

    def move_to(self, core: Core) -> None:
        """Move to a core. A refusal is ignored, because only speed depends on it."""
        if core not in (self._core, ANY_CORE):
            self._core = core
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {int.from_bytes(core, "big")})


_getcpu = getattr(library, "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None

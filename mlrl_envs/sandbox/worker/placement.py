"""Keeping the processes of one program on one core.

Judge, candidate and supervisor take turns, so they never gain from a second core, while waking a
process there costs two to three times as much as on its own. The supervisor runs wherever the
kernel puts it; at the start of each program the others follow it.
"""

import contextlib
import os
from typing import TypeAlias

from mlrl_envs.sandbox.jail.syscalls import library

__all__ = ["ANYWHERE", "Core", "Place", "here"]

Core: TypeAlias = bytes  # two bytes
ANYWHERE: Core = b"\xff\xff"


def here() -> Core:
    """Return the core that this process runs on."""
    return _number().to_bytes(2, "big") if _number is not None else ANYWHERE


class Place:
    """Where this process and what it forks may run."""

    def __init__(self) -> None:
        self._core = ANYWHERE

    def follow(self, core: Core) -> None:
        """Move to a core. It is only a matter of speed: where it cannot be had, stay."""
        if core not in (self._core, ANYWHERE):
            self._core = core
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {int.from_bytes(core, "big")})


_number = getattr(library, "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None

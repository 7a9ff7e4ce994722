"""The sandbox of a whole process, named before it exists: light, picklable, equal to its like."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["SharedSandbox"]


@dataclass(frozen=True)
class SharedSandbox:
    """The sandbox that a whole process shares, found when the first program is run.

    Args:
        limits: What each program may use; None for the defaults.
    """

    limits: Any = None  # mlrl_envs.sandbox.Limits, which is imported only when a program runs

    def run_many(self, programs: Sequence[Any]) -> list[Any]:
        """Run programs in the shared sandbox; see `mlrl_envs.sandbox.Sandbox.run_many`."""
        if not programs:
            return []
        from mlrl_envs.sandbox import shared_sandbox

        shared = shared_sandbox() if self.limits is None else shared_sandbox(self.limits)
        return list(shared.run_many(programs))

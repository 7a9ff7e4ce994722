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
        return list(self._shared().run_many(programs)) if programs else []

    def play_many(self, scripts: Sequence[Any]) -> list[Any]:
        """Play scripts in the shared sandbox; see `mlrl_envs.sandbox.Sandbox.play_many`."""
        return list(self._shared().play_many(scripts)) if scripts else []

    def _shared(self) -> Any:  # noqa: ANN401  mlrl_envs.sandbox.Sandbox, imported when needed
        from mlrl_envs.sandbox import shared_sandbox

        return shared_sandbox() if self.limits is None else shared_sandbox(self.limits)

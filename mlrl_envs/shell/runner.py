"""Reference to the sandbox of a process that is created at its first use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.types import ProgramRunner

__all__ = ["SharedSandbox", "choose_sandbox"]


@dataclass(frozen=True)
class SharedSandbox:
    """The shared sandbox of the process, looked up when the first program runs.

    It is picklable, and equal to other references with the same limits.

    Args:
        limits: Resource limits of each program; None uses the defaults.
    """

    limits: Any = None  # mlrl_envs.sandbox.Limits, which is imported only when a program runs

    def run_many(self, programs: Sequence[Any]) -> list[Any]:
        """Run programs in the shared sandbox; see `mlrl_envs.sandbox.Sandbox.run_many`."""
        return list(self._shared().run_many(programs)) if programs else []

    def play_many(self, scripts: Sequence[Any]) -> list[Any]:
        """Run scripts in the shared sandbox; see `mlrl_envs.sandbox.Sandbox.play_many`."""
        return list(self._shared().play_many(scripts)) if scripts else []

    def _shared(self) -> Any:  # noqa: ANN401  mlrl_envs.sandbox.Sandbox, imported when needed
        from mlrl_envs.sandbox import shared_sandbox

        return shared_sandbox() if self.limits is None else shared_sandbox(self.limits)


def choose_sandbox(sandbox: ProgramRunner | None, limits: object) -> ProgramRunner:
    """Return the given sandbox, or a reference to the shared one with these limits.

    Raises:
        InvalidArgumentError: If both are given, or one of them has the wrong type.
    """
    if sandbox is not None and limits is not None:
        raise InvalidArgumentError("pass limits to the sandbox you pass, or only limits")
    if sandbox is not None:
        if not callable(getattr(sandbox, "run_many", None)):
            raise InvalidArgumentError(f"sandbox must have run_many, got {sandbox!r}")
        return sandbox
    if limits is not None:
        from mlrl_envs.sandbox import Limits

        if not isinstance(limits, Limits):
            raise InvalidArgumentError(f"limits must be mlrl_envs.sandbox.Limits, got {limits!r}")
    return SharedSandbox(limits)

"""Deadlines on a busy machine: a program that is kept waiting is not slow."""

from collections.abc import Callable

__all__ = ["Patience"]

AT_WORK, HAD = 0.05, 0.8  # shares of a limit, in processor seconds


class Patience:
    """More time for programs that a busy machine kept waiting.

    A deadline is wall time, so that a program that sleeps meets it. One that is at work but had
    to share its core gets the same time once more, until it has had its time on the processor.

    Args:
        used: Returns the processor seconds that the program has had.
    """

    def __init__(self, used: Callable[[], float]) -> None:
        self._used = used
        self._seen = self._granted = self._step = 0.0

    def granted(self, step: float) -> float:
        """Return the seconds that were added to the step that began then."""
        if step != self._step:
            self._step, self._granted = step, 0.0
        return self._granted

    def grant(self, seconds: float) -> bool:
        """Add a limit's seconds once more, if the program is at work and has not had them."""
        used = self._used()
        if not self._seen + AT_WORK * seconds < used < HAD * seconds:
            return False
        self._seen = used
        self._granted += seconds
        return True

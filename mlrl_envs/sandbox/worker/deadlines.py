"""Deadline extensions for programs that had to share their processor core."""

from collections.abc import Callable

__all__ = ["DeadlineExtension"]

# Shares of a limit, compared with the processor time that the program used.
MIN_PROGRESS, FULL_USE = 0.05, 0.8


class DeadlineExtension:
    """Extra time for a program that ran, but was slowed down by other load on the machine.

    Deadlines are wall time, so that a program that sleeps is stopped. When a deadline passes, the
    limit is granted once more if two conditions hold: since the last extension the program used
    more than 5 % of the limit on the processor (it does not sleep), and in total it used less
    than 80 % of the limit (it did not have its time yet).

    Args:
        used: Returns the processor seconds that the program has used so far.
    """

    def __init__(self, used: Callable[[], float]) -> None:
        self._used = used
        self._seen = self._granted = self._step = 0.0

    def granted(self, step: float) -> float:
        """Return the seconds added to the current step.

        Args:
            step: Start time of the step; a new value starts again from zero.
        """
        if step != self._step:
            self._step, self._granted = step, 0.0
        return self._granted

    def grant(self, seconds: float) -> bool:
        """Add `seconds` to the current step if both conditions hold, and return whether they do."""
        used = self._used()
        if not self._seen + MIN_PROGRESS * seconds < used < FULL_USE * seconds:
            return False
        self._seen = used
        self._granted += seconds
        return True

"""Warning of a run that does not learn, although nothing fails."""

import warnings
from collections.abc import Mapping

__all__ = ["IdleUpdates"]

PATIENCE = 5
NORM, RATE = "/grad_norm", "/truncated_rate"


class IdleUpdates:
    """Counts updates in a row without a gradient of any policy; warns once."""

    def __init__(self) -> None:
        self._count = 0
        self._is_told = False

    def see(self, metrics: Mapping[str, float]) -> None:
        """Look at the metrics of an update; those of other learners than ours say nothing."""
        is_known = any(name.endswith((NORM, RATE)) for name in metrics)
        is_idle = is_known and not any(v for name, v in metrics.items() if name.endswith(NORM))
        self._count = self._count + 1 if is_idle else 0
        if self._count < PATIENCE or self._is_told:
            return
        self._is_told = True
        warnings.warn(
            f"the last {PATIENCE} updates had no gradient, so that no policy has changed: all "
            "answers that are compared earned the same, or none was left to train on; see "
            "zero_variance_rate and truncated_rate, and take other tasks, a larger group.size or "
            "more tasks per iteration",
            RuntimeWarning,
            stacklevel=2,
        )

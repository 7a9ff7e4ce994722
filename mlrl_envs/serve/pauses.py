"""Random pauses between the calls to a server that fails or is busy."""

import random

__all__ = ["jitter", "pause_after"]

FIRST_PAUSE, LAST_PAUSE = 0.05, 2.0
_draw = random.SystemRandom()  # leaves the global generator alone


def jitter(seconds: float) -> float:
    """Return a random time of half to one and a half of some seconds."""
    return seconds * _draw.uniform(0.5, 1.5)


def pause_after(failures: int) -> float:
    """Return the seconds to wait after some failures in a row, with jitter."""
    return jitter(min(LAST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10)))

"""Graceful stop of a training run on SIGINT or SIGTERM."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["interruptible"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interruptible(*, announce: bool = True) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM was received inside the block.

    The second signal raises `KeyboardInterrupt`. Outside the main thread signals are not handled.

    Args:
        announce: Print a message on stderr at the first signal.
    """
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield received.is_set
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if received.is_set():
            raise KeyboardInterrupt
        received.set()
        if announce:
            message = "\nstopping after this iteration; press again to stop immediately"
            print(message, file=sys.stderr)

    previous = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield received.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

"""Stopping a long run with a key press, without losing what is in hand."""

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
    """Turn the first SIGINT or SIGTERM into a wish to stop; the second is a `KeyboardInterrupt`.

    Args:
        announce: Say on stderr that the wish was heard.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        if announce:
            print("\nstopping after this iteration; once more to stop at once", file=sys.stderr)

    previous = {number: signal.signal(number, on_interrupt) for number in SIGNALS}
    try:
        yield asked.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

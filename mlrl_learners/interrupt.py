"""Stopping a long run with a key press, without losing what is in hand."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["interruptible"]


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT into a wish to stop; the second one raises `KeyboardInterrupt`."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        print("\nstopping after this iteration; once more to stop at once", file=sys.stderr)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, previous)

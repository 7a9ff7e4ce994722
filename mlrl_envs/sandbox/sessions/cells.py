"""A session's interpreter: cells run one after the other in one namespace, as at a prompt.

Everything here runs beside code that may rewrite it; nothing here is trusted. What differs from
run to run (the clock, the process number, random bytes) is replaced, so that a session can be
replayed. What it does not cover: `id`, threads, and how much time a cell takes.
"""

import ast
import io
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from mlrl_envs.sandbox.wire import frames

__all__ = ["FAILED", "FINE", "Capture", "run_cell", "serve_cells", "tame"]

SOURCE_CAP = 64 << 20
FINE, FAILED = b"+", b"-"
CELL = "<cell>"
EPOCH = 946_684_800.0  # 2000-01-01, where every session's clock begins
TICK = 0.001


class Capture(io.TextIOBase):
    """Standard output and error of one cell, kept up to a cap."""

    def __init__(self, cap: int) -> None:
        self._parts: list[str] = []
        self._left = cap

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Keep text while there is room; the rest is dropped without a word."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._left > 0:
            self._parts.append(text[: self._left])
            self._left -= len(self._parts[-1])
        return len(text)

    def text(self) -> str:
        """Return what was kept."""
        return "".join(self._parts)


def serve_cells(link: int, output_bytes: int) -> None:
    """Run cells until the supervisor hangs up.

    Args:
        link: Descriptor of a socket: sources come in, a byte and a text go out.
        output_bytes: Characters of output that are kept, a cell.
    """
    tame()
    space: dict[str, Any] = {"__name__": "__main__"}
    while (frame := frames.receive(link, SOURCE_CAP)) is not None:
        fine, text = run_cell(frame.decode("utf-8", "surrogatepass"), space, output_bytes)
        said = text.encode("utf-8", "backslashreplace")[:output_bytes]
        frames.send(link, (FINE if fine else FAILED) + said)


def run_cell(source: str, space: dict[str, Any], cap: int) -> tuple[bool, str]:
    """Run a cell and return whether it ended well, and what it showed.

    Args:
        source: Statements; the value of a last expression is shown unless it is None.
        space: The session's names.
        cap: Characters of output that are kept.
    """
    output = Capture(cap)
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), output, output
    try:
        body = ast.parse(source, CELL).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), CELL, "exec"), space)  # noqa: S102  the point of it
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), CELL, "eval"), space)  # noqa: S307
            if value is not None:
                space["_"] = value
                output.write(f"{value!r}\n")
    except BaseException as error:  # noqa: BLE001  whatever a cell raises, is shown
        return False, output.text() + _describe(error)
    return True, output.text()


def tame() -> None:
    """Replace what differs from run to run: clock, process number, random bytes."""
    import random

    random.seed(0)
    source = random.Random(1)  # noqa: S311  its being foreseen is the purpose
    os.getpid = lambda: 1
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]  # noqa: SLF001
    os.environ["TZ"] = "UTC"
    time.tzset()
    _set_clock()


def _set_clock() -> None:
    # time.monotonic stays: event loops wait by it.
    import datetime as dt

    read, sleep, local, utc = _clock(), time.sleep, time.localtime, time.gmtime
    time.time = time.perf_counter = time.process_time = read
    for name in ("time_ns", "perf_counter_ns", "process_time_ns"):
        setattr(time, name, lambda: int(read() * 1e9))
    time.sleep = lambda seconds: (sleep(seconds), read(seconds))[0]
    time.localtime = lambda seconds=None: local(read() if seconds is None else seconds)
    time.gmtime = lambda seconds=None: utc(read() if seconds is None else seconds)

    class Date(dt.date):
        @classmethod
        def today(cls) -> "Date":
            return cls.fromtimestamp(read())

    class DateTime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "DateTime":
            return cls.fromtimestamp(read(), tz)

        @classmethod
        def utcnow(cls) -> "DateTime":
            return cls.fromtimestamp(read())

        today = now

    for kind, name in ((Date, "date"), (DateTime, "datetime")):
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = "datetime"
        setattr(dt, name, kind)


def _clock() -> Callable[..., float]:
    now = EPOCH

    def read(passed: float = TICK) -> float:
        nonlocal now
        now += passed
        return now

    return read


def _describe(error: BaseException) -> str:
    kind = str(type.__getattribute__(type(error), "__name__"))
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  its own __str__ may raise anything
        text = ""
    line = _line_of(error)
    where = f" (line {line})" if line else ""
    return f"{kind}: {text}{where}" if text else kind + where


def _line_of(error: BaseException) -> int:
    """Return the last line of a cell that an error passed through, 0 if there is none."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == CELL:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

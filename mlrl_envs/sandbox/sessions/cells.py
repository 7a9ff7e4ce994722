"""Interpreter of a session: runs cells one after the other in one namespace, as at a prompt.

The code below shares its process with untrusted cells, which may modify it, so the supervisor
trusts none of its answers. Sources of values that differ between runs (the clock, the process
number, random bytes) are replaced by deterministic ones, so that a session can be replayed.

Not covered: `id`, threads, and the time that a cell takes.
"""

import ast
import io
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from mlrl_envs.sandbox.wire import frames

__all__ = ["FAILED", "SUCCEEDED", "Capture", "make_deterministic", "run_cell", "serve_cells"]

SOURCE_CAP = 64 << 20
SUCCEEDED, FAILED = b"+", b"-"  # first byte of an answer
CELL = "<cell>"
EPOCH = 946_684_800.0  # 2000-01-01, start time of every session's clock
TICK = 0.001  # seconds by which the clock advances when it is read


class Capture(io.TextIOBase):
    """Standard output and error of one cell, limited in length.

    Args:
        cap: Number of characters that are kept.
    """

    def __init__(self, cap: int) -> None:
        self._parts: list[str] = []
        self._left = cap

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Keep text up to the limit; the rest is dropped silently."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._left > 0:
            self._parts.append(text[: self._left])
            self._left -= len(self._parts[-1])
        return len(text)

    def text(self) -> str:
        """Return the text that was kept."""
        return "".join(self._parts)


def serve_cells(link: int, output_bytes: int) -> None:
    """Run cells until the supervisor closes the connection.

    Args:
        link: Descriptor of the socket to the supervisor. Each frame received is the source of a
            cell; each answer is one byte and a text.
        output_bytes: Length of output that is kept per cell.
    """
    make_deterministic()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    while (frame := frames.receive(link, SOURCE_CAP)) is not None:
        source = frame.decode("utf-8", "surrogatepass")
        succeeded, text = run_cell(source, namespace, output_bytes)
        encoded = text.encode("utf-8", "backslashreplace")[:output_bytes]
        frames.send(link, (SUCCEEDED if succeeded else FAILED) + encoded)


def run_cell(source: str, namespace: dict[str, Any], cap: int) -> tuple[bool, str]:
    """Run a cell; return whether it ended without an exception, and the text to show.

    Args:
        source: Statements. If the last one is an expression, its value is shown unless it is None.
        namespace: Global names of the interpreter.
        cap: Number of characters of output that are kept.
    """
    output = Capture(cap)
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), output, output
    try:
        body = ast.parse(source, CELL).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), CELL, "exec"), namespace)  # noqa: S102  its purpose
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), CELL, "eval"), namespace)  # noqa: S307
            if value is not None:
                namespace["_"] = value
                output.write(f"{value!r}\n")
    except BaseException as error:  # noqa: BLE001  any exception is shown
        return False, output.text() + _describe(error)
    return True, output.text()


def make_deterministic() -> None:
    """Replace clock, process number and random bytes by deterministic ones."""
    import random

    random.seed(0)
    source = random.Random(1)  # noqa: S311  must be deterministic
    os.getpid = lambda: 1
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]  # noqa: SLF001
    os.environ["TZ"] = "UTC"
    time.tzset()
    _set_clock()


def _set_clock() -> None:
    # `time.monotonic` stays unchanged, because event loops use it to wait.
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
    except BaseException:  # noqa: BLE001  its `__str__` may raise anything
        text = ""
    line = _line_of(error)
    where = f" (line {line})" if line else ""
    return f"{kind}: {text}{where}" if text else kind + where


def _line_of(error: BaseException) -> int:
    """Return the last line of a cell in the traceback of an error, 0 if there is none."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == CELL:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

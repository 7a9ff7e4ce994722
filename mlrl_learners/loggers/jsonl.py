"""Files of JSON lines that survive kills and full disks, and metrics in one of them.

A record is one line, written at once, flushed and synced before
`append` returns; whatever ends a run, every line that was appended is whole, and a line torn by a
kill or a full disk is trimmed. Values are JSON, so infinities and NaN are refused, and text is
escaped to ASCII, so that lone surrogates survive the round trip.

Not covered: two processes writing to one file. A run directory belongs to one run.
"""

import json
import math
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mlrl_learners.errors import NumericsError, RunDirError

__all__ = ["JsonlFile", "JsonlLogger"]

Record = Mapping[str, object]


class JsonlFile:
    """A file of JSON objects, one a line, that survives kills and full disks.

    Opening creates the file and its folder, and trims a torn last line.

    Args:
        path: Where the lines are, by custom `*.jsonl`.

    Raises:
        RunDirError: If the file cannot be created or mended.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _mend_tail(self.path)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def append(self, record: Record) -> None:
        """Add one record; when this returns, it is on the disk.

        Raises:
            NumericsError: If a value is NaN or infinite.
            RunDirError: If it cannot be written; the file then ends with its last whole line.
        """
        line = _to_line(record, self.path)
        try:
            _append_durably(self.path, line)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def records(self) -> Iterator[dict[str, object]]:
        """Yield every record in order.

        Raises:
            RunDirError: If a line is not a JSON object.
        """
        with self.path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield _from_line(line, self.path, number)

    def keep(self, predicate: Callable[[dict[str, object]], bool]) -> int:
        """Move records for which `predicate` is false to `*.abandoned.jsonl`.

        A resumed run sets aside in this way what it is about to do again. A kill in between can
        leave a record in both files, never in none.

        Returns:
            How many records were moved.

        Raises:
            RunDirError: If either file cannot be written; this one is then unchanged.
        """
        kept: list[bytes] = []
        moved: list[bytes] = []
        for record in self.records():
            (kept if predicate(record) else moved).append(_to_line(record, self.path))
        if not moved:
            return 0
        try:
            abandoned = self.path.with_suffix(f".abandoned{self.path.suffix}")
            _mend_tail(abandoned)
            _append_durably(abandoned, b"".join(moved))
            _replace_durably(self.path, b"".join(kept))
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        return len(moved)


class JsonlLogger:
    """Writes metrics as `{"step": …, name: value, …}` lines."""

    def __init__(self, path: Path) -> None:
        self._file = JsonlFile(path)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Append one line."""
        self._file.append({"step": step, **metrics})

    def close(self) -> None:
        """Do nothing: every line is on the disk already."""


def _to_line(record: Record, path: Path) -> bytes:
    try:
        return json.dumps(record, allow_nan=False).encode("ascii") + b"\n"
    except ValueError as error:
        names = sorted(_not_finite(record))
        if not names:
            raise
        raise NumericsError(f"{path.name}: not finite: {', '.join(names)}") from error


def _not_finite(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{name}[{index}]")


def _from_line(line: str, path: Path, number: int) -> dict[str, object]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise RunDirError(f"{path}:{number} is not a JSON object; remove that line")
    return record


def _mend_tail(path: Path) -> None:
    """Create the file if need be, and make it end with a whole line."""
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        start, tail = _unfinished_tail(file.fileno(), size)
        if not tail:
            return
        if _is_object(tail):  # only the newline was lost: the record was finished
            file.write(b"\n")
        else:
            file.truncate(start)
        file.flush()
        os.fsync(file.fileno())


def _unfinished_tail(descriptor: int, size: int, block: int = 65536) -> tuple[int, bytes]:
    """Return where the text after the last newline begins, and that text."""
    tail, start = b"", size
    while start > 0:
        begin = max(0, start - block)
        tail = os.pread(descriptor, start - begin, begin) + tail
        start = begin
        newline = tail.rfind(b"\n")
        if newline >= 0:
            return start + newline + 1, tail[newline + 1 :]
    return 0, tail


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _append_durably(path: Path, data: bytes) -> None:
    """Append all of `data` or nothing of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        try:
            _write_all(descriptor, data)
        except BaseException:  # an interrupt, too, must not leave half a line
            os.ftruncate(descriptor, size)
            raise
        try:
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _replace_durably(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        _append_durably(beside, data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> RunDirError:
    reason = error.strerror or str(error)
    return RunDirError(
        f"cannot write {path}: {reason}; free space or fix its permissions, then resume the run"
    )

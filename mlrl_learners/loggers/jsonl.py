"""Crash-safe files of JSON lines, and a logger that writes metrics to one.

A record is one line, which is written and synced before `append` or `extend` returns. However a run
ends, every appended line is whole; a line that a kill or a full disk has torn is removed when the
file is opened. Infinities and NaN are rejected, because JSON has neither. Text is escaped to ASCII,
so that lone surrogates can be read back. Arrays and scalars of NumPy become numbers; other values
that JSON does not know are rejected.

`read_records` reads a file that another process may be writing, and changes nothing.

Not covered: several processes that write to one file.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from mlrl_learners.errors import RunDirError
from mlrl_learners.loggers.json_text import json_text

__all__ = ["JsonlFile", "JsonlLogger", "read_records"]

Record = Mapping[str, object]


class JsonlFile:
    """A crash-safe file of JSON objects, one per line.

    Opening creates the file and its folder, and removes a torn last line: it is for the process
    that writes the file. Others use `read_records`.

    Args:
        path: Path of the file, by convention `*.jsonl`.

    Raises:
        RunDirError: If the file cannot be created or repaired.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _mend_tail(self.path)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def append(self, record: Record) -> None:
        """Append one record and sync it to disk.

        Raises:
            NumericsError: If a value is NaN or infinite.
            RunDirError: If it cannot be written; the file then ends after its last whole line.
        """
        self.extend([record])

    def extend(self, records: Iterable[Record]) -> None:
        """Append records in order, with one sync to disk, which takes longer than the writing.

        Raises:
            NumericsError: If a value is NaN or infinite; no record is then written.
            RunDirError: If they cannot be written; the file then ends after its last whole line.
        """
        lines = b"".join(_to_line(record, self.path) for record in records)
        if not lines:
            return
        try:
            _append_durably(self.path, lines)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def records(self) -> Iterator[dict[str, object]]:
        """Yield every record, in order.

        Raises:
            RunDirError: If a line is not a JSON object.
        """
        yield from read_records(self.path)

    def keep(self, predicate: Callable[[dict[str, object]], bool]) -> int:
        """Move records for which `predicate` is false to `*.abandoned.jsonl`.

        A resumed run removes in this way the records that it will write again. A kill during the
        call may leave a record in both files, but never in neither.

        Returns:
            Number of records moved.

        Raises:
            RunDirError: If a file cannot be written; this file is then unchanged.
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


def read_records(path: Path) -> Iterator[dict[str, object]]:
    """Yield every complete record of a file, in order, and never write to it.

    A last line without a newline is left out, because the process that writes it may not have
    finished it. Missing files have no records.

    Args:
        path: Path of the file.

    Raises:
        RunDirError: If a complete line is not a JSON object.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.endswith("\n"):
                yield _from_line(line, path, number)


class JsonlLogger:
    """Writes metrics as `{"step": …, name: value, …}` lines."""

    def __init__(self, path: Path) -> None:
        self._file = JsonlFile(path)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Append one line."""
        self._file.append({"step": step, **metrics})

    def close(self) -> None:
        """Do nothing, because every line is already on disk."""


def _to_line(record: Record, path: Path) -> bytes:
    return json_text(record, path.name).encode("ascii") + b"\n"


def _from_line(line: str, path: Path, number: int) -> dict[str, object]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise RunDirError(f"{path}:{number} is not a JSON object; remove that line")
    return record


def _mend_tail(path: Path) -> None:
    """Create the file if it is missing, and repair a torn last line."""
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        start, tail = _unfinished_tail(file.fileno(), size)
        if not tail:
            return
        if _is_object(tail):  # the record is complete and only its newline is missing
            file.write(b"\n")
        else:
            file.truncate(start)
        file.flush()
        os.fsync(file.fileno())


def _unfinished_tail(descriptor: int, size: int, block: int = 65536) -> tuple[int, bytes]:
    """Return the offset after the last newline, and the text from there on."""
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
    """Append all of `data` or none of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        try:
            _write_all(descriptor, data)
        except BaseException:  # also on an interrupt, no partial line may remain
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

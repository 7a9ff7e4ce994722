"""The verdict board: memory shared by one worker's judge and supervisor, and by nobody else.

The judge writes records here as they happen; the supervisor reads them once the judge is gone,
whatever ended it. Nothing is sent, so a judge killed in mid-test keeps what had passed, and the
candidate, forked from a process that never held this memory, has no channel to it.
"""

import json
import mmap
import struct
import time

__all__ = ["ENDED", "FINISHED", "LOADING", "TESTING", "Board", "Record"]

LOADING, TESTING, FINISHED, ENDED = 1, 2, 3, 4  # ended: before there was anything to test
HEADER = struct.Struct("=IIIIdi")  # phase, bytes used, records, passed, time of last step, test
STARTED = struct.Struct("=di")
STARTED_AT = 16
SIZE = 1 << 21
Record = tuple[str, bool, str]


class Board:
    """A phase, two counters, a time stamp and lines of JSON in anonymous shared memory."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        self._used = self._count = self._passed = self._phase = 0

    def reset(self) -> None:
        """Make the board ready for the next run; only while no judge is alive."""
        self._used, self._count, self._passed, self._phase = HEADER.size, 0, 0, LOADING
        self._stamp()

    def start(self, phase: int) -> None:
        """Enter a phase, which starts a new deadline."""
        self._phase = phase
        self._stamp()

    def step(self, test: int) -> None:
        """Start the deadline of one test, named by its place in the plan."""
        STARTED.pack_into(self._memory, STARTED_AT, time.monotonic(), test)

    def note(self, key: str, value: object) -> None:
        """Write a fact about the run: its plan, its ending."""
        self._append(json.dumps({key: value}).encode())
        self._stamp()

    def record(self, name: str, passed: bool, error: str) -> None:
        """Write one verdict. Beyond the board's size only the counters go on."""
        self._count += 1
        self._passed += passed
        self._append(json.dumps((name, passed, error)).encode())
        self._stamp()

    @property
    def phase(self) -> int:
        """The phase, as the other process last wrote it."""
        return int(HEADER.unpack_from(self._memory)[0])

    @property
    def last_step(self) -> float:
        """`time.monotonic` of the last step."""
        return float(HEADER.unpack_from(self._memory)[4])

    @property
    def current(self) -> int:
        """Place in the plan of the test that is running, or -1 between tests."""
        return int(HEADER.unpack_from(self._memory)[5])

    def read(self) -> tuple[int, int, int, list[Record], dict[str, object]]:
        """Return phase, number of records, how many passed, the records, and the notes."""
        phase, used, count, passed, _time, _test = HEADER.unpack_from(self._memory)
        records: list[Record] = []
        notes: dict[str, object] = {}
        for line in self._memory[HEADER.size : used].splitlines():
            entry = json.loads(line)
            if isinstance(entry, dict):
                notes.update(entry)
            else:
                records.append((entry[0], entry[1], entry[2]))
        return phase, count, passed, records, notes

    def _append(self, line: bytes) -> None:
        end = self._used + len(line) + 1
        if end <= SIZE:
            self._memory[self._used : end] = line + b"\n"
            self._used = end

    def _stamp(self) -> None:
        HEADER.pack_into(
            self._memory,
            0,
            self._phase,
            self._used,
            self._count,
            self._passed,
            time.monotonic(),
            -1,
        )

"""Verdict board: memory shared by the judge and the supervisor of one worker.

The judge writes a record after each test. The supervisor reads the records after the judge has
finished or was killed, so the verdicts up to that moment are kept. Candidates are forked from a
process in which this memory was never mapped, so no candidate can read or write it.
"""

import json
import mmap
import time

__all__ = ["ENDED", "FINISHED", "LOADING", "TESTING", "Board", "Record"]

LOADING, TESTING, FINISHED, ENDED = 1, 2, 3, 4  # ENDED: the run ended before the first test
# Indices of 4-byte integers in the header; the time stamp takes the indices 4 and 5.
PHASE, USED, COUNT, PASSED, TEST = 0, 1, 2, 3, 6
TIME = slice(16, 24)
HEADER = 32
SIZE = 1 << 21
Record = tuple[str, bool, str]


class Board:
    """Phase, counters, time stamp and lines of JSON in anonymous shared memory.

    Each number is written with one store, because the other process may read it at any moment.
    `struct.pack_into` must not be used here: it first fills the bytes with zeros.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        header = memoryview(self._memory)[:HEADER]
        self._numbers = header.cast("i")
        self._time = header[TIME].cast("d")

    def reset(self) -> None:
        """Clear the board for the next run; only while no judge is running a job."""
        self._numbers[USED], self._numbers[COUNT], self._numbers[PASSED] = HEADER, 0, 0
        self.start(LOADING)

    def start(self, phase: int) -> None:
        """Enter a phase, which starts a new deadline."""
        self._stamp()  # first, so that no reader sees the new phase with the old time
        self._numbers[PHASE] = phase

    def step(self, test: int) -> None:
        """Start the deadline of one test, given by its index in the plan."""
        self._time[0] = time.monotonic()
        self._numbers[TEST] = test

    def note(self, key: str, value: object) -> None:
        """Write a JSON value under a key, such as the plan or the ending of the run."""
        self._append(json.dumps({key: value}).encode())
        self._stamp()

    def record(self, name: str, passed: bool, error: str) -> None:
        """Write one verdict. When the board is full, only the counters are updated."""
        self._numbers[COUNT] += 1
        self._numbers[PASSED] += passed
        self._append(json.dumps((name, passed, error)).encode())
        self._stamp()

    @property
    def phase(self) -> int:
        """The phase that the judge last wrote."""
        return self._numbers[PHASE]

    @property
    def last_step(self) -> float:
        """Value of `time.monotonic` at the judge's last write."""
        return self._time[0]

    @property
    def current(self) -> int:
        """Index in the plan of the test that is running, or -1 between tests."""
        return self._numbers[TEST]

    def read(self) -> tuple[int, int, int, list[Record], dict[str, object]]:
        """Return phase, number of tests, number of passed tests, the records, and the notes."""
        phase, used, count, passed = self._numbers[: TIME.start // 4]
        records: list[Record] = []
        notes: dict[str, object] = {}
        for line in self._memory[HEADER:used].splitlines():
            entry = json.loads(line)
            if isinstance(entry, dict):
                notes.update(entry)
            else:
                records.append((entry[0], entry[1], entry[2]))
        return phase, count, passed, records, notes

    def _append(self, line: bytes) -> None:
        begin = self._numbers[USED]
        end = begin + len(line) + 1
        if end <= SIZE:
            self._memory[begin:end] = line + b"\n"
            self._numbers[USED] = end

    def _stamp(self) -> None:
        self._numbers[TEST] = -1
        self._time[0] = time.monotonic()

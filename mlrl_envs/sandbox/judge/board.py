"""The verdict board: memory shared by one worker's judge and supervisor, and by nobody else.

The judge writes records here as they happen; the supervisor reads them once the judge is gone,
whatever ended it. Nothing is sent, so a judge killed in mid-test keeps what had passed, and the
candidate, forked from a process that never held this memory, has no channel to it.
"""

import json
import mmap
import time

__all__ = ["ENDED", "FINISHED", "LOADING", "TESTING", "Board", "Record"]

LOADING, TESTING, FINISHED, ENDED = 1, 2, 3, 4  # ended: before there was anything to test
PHASE, USED, COUNT, PASSED, TEST = 0, 1, 2, 3, 6  # places of 4 bytes; the time lies before the test
TIME = slice(16, 24)
HEADER = 32
SIZE = 1 << 21
Record = tuple[str, bool, str]


class Board:
    """A phase, two counters, a time stamp and lines of JSON in anonymous shared memory.

    Each number is written by one store, because the other process may look at any moment: what
    `struct.pack_into` writes is all zero for an instant.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        header = memoryview(self._memory)[:HEADER]
        self._numbers = header.cast("i")
        self._time = header[TIME].cast("d")

    def reset(self) -> None:
        """Make the board ready for the next run; only while no judge is alive."""
        self._numbers[USED], self._numbers[COUNT], self._numbers[PASSED] = HEADER, 0, 0
        self.start(LOADING)

    def start(self, phase: int) -> None:
        """Enter a phase, which starts a new deadline."""
        self._stamp()  # first, so that nobody sees a new phase with an old time
        self._numbers[PHASE] = phase

    def step(self, test: int) -> None:
        """Start the deadline of one test, named by its place in the plan."""
        self._time[0] = time.monotonic()
        self._numbers[TEST] = test

    def note(self, key: str, value: object) -> None:
        """Write a fact about the run: its plan, its ending."""
        self._append(json.dumps({key: value}).encode())
        self._stamp()

    def record(self, name: str, passed: bool, error: str) -> None:
        """Write one verdict. Beyond the board's size only the counters go on."""
        self._numbers[COUNT] += 1
        self._numbers[PASSED] += passed
        self._append(json.dumps((name, passed, error)).encode())
        self._stamp()

    @property
    def phase(self) -> int:
        """The phase, as the other process last wrote it."""
        return self._numbers[PHASE]

    @property
    def last_step(self) -> float:
        """`time.monotonic` of the last step."""
        return self._time[0]

    @property
    def current(self) -> int:
        """Place in the plan of the test that is running, or -1 between tests."""
        return self._numbers[TEST]

    def read(self) -> tuple[int, int, int, list[Record], dict[str, object]]:
        """Return phase, number of records, how many passed, the records, and the notes."""
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

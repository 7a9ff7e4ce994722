"""Tests of the verdict board."""

import os
import time

from mlrl_envs.sandbox.judge.board import FINISHED, LOADING, TESTING, Board


def test_written_records_and_notes_are_read():
    board = Board()
    board.reset()
    board.start(TESTING)
    board.record("a", True, "")
    board.step(1)
    assert (board.phase, board.current) == (TESTING, 1)
    board.record("b", False, "false")
    board.note("plan", ["a", "b"])
    board.start(FINISHED)
    assert board.current == -1
    records = [("a", True, ""), ("b", False, "false")]
    assert board.read() == (FINISHED, 2, 1, records, {"plan": ["a", "b"]})


def test_a_full_board_updates_only_the_counters():
    board = Board()
    board.reset()
    for _ in range(40):
        board.record("x" * 100_000, True, "")
    _phase, count, passed, records, _notes = board.read()
    assert (count, passed) == (40, 40)
    assert 15 < len(records) < 40


def test_readers_never_see_a_partial_write():
    board = Board()
    board.reset()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        while time.monotonic() < begun + 0.5:
            board.start(TESTING)
            board.step(3)
            board.start(LOADING)
        os._exit(0)
    seen = set()
    while time.monotonic() < begun + 0.4:
        assert board.last_step >= begun - 1
        seen |= {board.phase, board.current + 10}
    os.waitpid(child, 0)
    assert seen <= {LOADING, TESTING, 9, 13}

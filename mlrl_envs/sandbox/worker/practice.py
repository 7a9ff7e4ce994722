"""Practice runs in a zygote, so that its children start with specialised bytecode.

CPython specialises the bytecode of a function for the types it is called with, and fills inline
caches while it runs. Work that a zygote has not done before a fork is repeated by every child, on
pages that the kernel must first copy.
"""

import builtins
import json
import os
import socket
import sys
from collections.abc import Callable

from mlrl_envs.sandbox.candidate import process
from mlrl_envs.sandbox.judge.board import Board
from mlrl_envs.sandbox.wire import frames

__all__ = ["warm_up_candidates", "warm_up_judges"]

ROUNDS = 6
OUTPUT = 1024
SOURCE = '''
from typing import List, Optional
import math
class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right
def first(xs: List[int], *, key: Optional[int] = None) -> list:
    """Return a sorted copy."""
    result = [x * x for x in sorted(xs, key=lambda x: -x) if x % 2 == 0]
    for i, x in enumerate(result):
        result[i] = round(math.sqrt(x) + 0.5, 2) if key else str(x)
    return result
def last(value):
    return value
'''
TESTS = """
def check(candidate):
    assert candidate([4, 1, 2]) == ["16", "4"]
    assert candidate([4], key=3) == [4.5], "message"
    for value in ("word", 3, 2.5, None, True, (1, "a"), {"a": 1}, {2}, [], [[1], [2, 3]]):
        assert last(value) == value
"""
JOB = {
    "source": SOURCE,
    "tests": TESTS,
    "helpers": "",
    "style": "check",
    "entry_points": ["first", "last"],
    "assurance": "split",
    "dunders": [],
}
CALLS: tuple[tuple[int, list[object], list[str]], ...] = (
    (0, [[4, 1, 2]], []),
    (0, [[4], 3], ["key"]),
    (1, ["word"], []),
    (1, [2.5], []),
    (1, [None], []),
    (1, [{"d": [["a", 1]]}], []),
    (1, [{"t": [1, "a"]}], []),
    (1, [[[1], [2, 3]]], []),
)


def warm_up_candidates() -> None:
    """Answer a few practice judges in this process, as a candidate does."""
    saved = sys.stdout, builtins.input, sys.getrecursionlimit()
    _run_rounds(_act_as_judge, lambda link: process.run_candidate(link, OUTPUT))
    sys.stdout, builtins.input = saved[:2]
    sys.setrecursionlimit(saved[2])
    sys.modules.pop("solution", None)


def warm_up_judges(run: Callable[[bytes, int], None], board: Board) -> None:
    """Judge a few practice programs in this process.

    Args:
        run: Judges a job, given as JSON, over a descriptor to the candidate.
        board: Receives the verdicts, and is reset afterwards.
    """
    saved = sys.stdout, sys.stderr
    job = json.dumps(JOB).encode()
    _run_rounds(lambda link: process.run_candidate(link, OUTPUT), lambda link: run(job, link))
    sys.stdout, sys.stderr = saved
    board.reset()


def _run_rounds(there: Callable[[int], None], here: Callable[[int], None]) -> None:
    """Run `ROUNDS` exchanges: one side in a forked child, the other side in this process."""
    pairs = [socket.socketpair() for _ in range(ROUNDS)]
    child = os.fork()
    if child == 0:
        try:
            for ours, theirs in pairs:
                ours.close()
                there(theirs.fileno())
                theirs.close()
        finally:
            os._exit(0)
    for ours, theirs in pairs:
        theirs.close()
        here(ours.fileno())
        ours.close()
    os.waitpid(child, 0)


def _act_as_judge(link: int) -> None:
    _exchange(link, ["load", 0, [], [], [], [SOURCE, JOB["entry_points"]]])
    for target, values, names in CALLS * 2:
        _exchange(link, ["call", target, [], values, [], names])


def _exchange(link: int, message: list[object]) -> None:
    frames.send(link, json.dumps(message).encode())
    frames.receive(link, 1 << 20)

"""Practice runs in a zygote, so that its children start with warm code.

The interpreter rewrites a function's code while it learns what the function is called with, and
fills caches as it goes. Whatever a zygote has not done before it forks, each child does again, on
pages that must be copied first.
"""

import builtins
import json
import os
import socket
import sys
from collections.abc import Callable

from mlrl_envs.sandbox.candidate import candidate
from mlrl_envs.sandbox.judge.board import Board
from mlrl_envs.sandbox.wire import frames

__all__ = ["warm_candidates", "warm_judges"]

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


def warm_candidates() -> None:
    """Serve a few practice sessions in this process, as a candidate would."""
    keep = sys.stdout, builtins.input, sys.getrecursionlimit()
    _play(_pretend_to_judge, lambda link: candidate.run_candidate(link, OUTPUT))
    sys.stdout, builtins.input = keep[:2]
    sys.setrecursionlimit(keep[2])
    sys.modules.pop("solution", None)


def warm_judges(run: Callable[[bytes, int], None], board: Board) -> None:
    """Judge a few practice programs in this process."""
    keep = sys.stdout, sys.stderr
    job = json.dumps(JOB).encode()
    _play(lambda link: candidate.run_candidate(link, OUTPUT), lambda link: run(job, link))
    sys.stdout, sys.stderr = keep
    board.reset()


def _play(there: Callable[[int], None], here: Callable[[int], None]) -> None:
    """Play some sessions, one side of each in one child, the other in this process."""
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


def _pretend_to_judge(link: int) -> None:
    _exchange(link, ["load", 0, [], [], [], [SOURCE, JOB["entry_points"]]])
    for target, values, names in CALLS * 2:
        _exchange(link, ["call", target, [], values, [], names])


def _exchange(link: int, message: list[object]) -> None:
    frames.send(link, json.dumps(message).encode())
    frames.receive(link, 1 << 20)

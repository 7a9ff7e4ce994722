"""One worker: a supervisor process with a zygote for judges and one for candidates.

The supervisor holds the owner's socket, keeps the deadlines and composes the outcome. It dies
with its owner, and takes everything below it along.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from mlrl_envs.sandbox import frames
from mlrl_envs.sandbox.board import LOADING, TESTING, Board
from mlrl_envs.sandbox.roles import Settings, prepare_candidate, prepare_judge
from mlrl_envs.sandbox.verdict import Ended, verdict_of
from mlrl_envs.sandbox.zygote import ENDING, Zygote

__all__ = ["main"]

JOB_CAP = 256 << 20
GO = b"go"
GLANCE_SECONDS = 0.1  # how often the supervisor looks at the board: the phase may have changed


def main(descriptor: int) -> None:
    """Serve jobs from the owner's socket until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner's Ctrl-C is the owner's business
    owner = socket.socket(fileno=descriptor)
    settings = json.loads(frames.receive(owner, JOB_CAP) or b"{}")
    Supervisor(owner, settings).serve()


class Supervisor:
    """Runs one program at a time between two zygotes."""

    def __init__(self, owner: socket.socket, settings: Settings) -> None:
        self._owner = owner
        self._settings = settings
        preload_for_candidates()
        self._candidates = self._spawn(lambda: prepare_candidate(settings), [owner])
        self._board = Board()
        preload_for_judges()
        self._judges = self._spawn(lambda: prepare_judge(self._board), [owner, self._candidates])

    def serve(self) -> None:
        """Say that the worker is ready, then run jobs."""
        frames.send(self._owner, json.dumps({"ready": True}).encode())
        while True:
            job = frames.receive(self._owner, JOB_CAP)
            if job is None:
                os._exit(0)
            frames.send(self._owner, json.dumps(self._run(job)).encode())

    def _spawn(
        self, prepare: Callable[[], Callable[[bytes], Any]], strangers: list[socket.socket]
    ) -> socket.socket:
        """Fork a zygote that keeps none of the other sockets."""
        ours, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            return ours
        try:
            for link in (ours, *strangers):
                link.close()
            die_with_parent()
            Zygote(theirs, descriptors=2, prepare=prepare()).serve()
        finally:
            os._exit(1)

    def _run(self, job: bytes) -> dict[str, Any]:
        begun = time.monotonic()
        self._board.reset()
        judge_end, candidate_end = socket.socketpair()
        watch, done = os.pipe()
        output = anonymous_file()
        try:
            candidate_fd, judge_fd = candidate_end.detach(), judge_end.detach()
            frames.send_with_descriptors(self._candidates, GO, [candidate_fd, output])
            os.close(candidate_fd)
            frames.send_with_descriptors(self._judges, job, [judge_fd, done])
            os.close(judge_fd)
            os.close(done)
            late = self._wait(watch, begun)
            endings = self._end(self._judges), self._end(self._candidates)
            cap = int(self._settings["output_kib"] * 1024)
            raw = os.pread(output, cap, 0)
        finally:
            os.close(watch)
            os.close(output)
        ended = Ended(late, *endings, raw, time.monotonic() - begun, self._settings)
        return verdict_of(self._board, ended)

    def _wait(self, watch: int, begun: float) -> str:
        """Wait for the judge's end; return which deadline passed, or "" if none did."""
        last = begun + self._settings["wall_seconds"]
        while True:
            allowed = {LOADING: "load_seconds", TESTING: "test_seconds"}.get(self._board.phase)
            due = self._board.last_step + self._settings[allowed] if allowed else last
            left = min(due, last) - time.monotonic()
            if left <= 0:
                return allowed if allowed and due < last else "wall_seconds"
            ready, _, _ = select.select([watch, self._owner], [], [], min(left, GLANCE_SECONDS))
            if watch in ready:
                return ""
            if self._owner in ready:  # the owner never speaks during a job: it is gone
                os._exit(0)

    def _end(self, zygote: socket.socket) -> tuple[int, float, int]:
        frames.send_with_descriptors(zygote, b"", [])
        answer = zygote.recv(ENDING.size, socket.MSG_WAITALL)
        if len(answer) < ENDING.size:
            os._exit(3)  # a zygote was killed from outside: the owner replaces this worker
        status, seconds, resident = ENDING.unpack(answer)
        return status, seconds, resident


def anonymous_file() -> int:
    """Return a descriptor of an empty file that no path leads to."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdout", os.MFD_CLOEXEC)
    import tempfile

    descriptor, path = tempfile.mkstemp()
    os.unlink(path)  # noqa: PTH108  pathlib is not loaded here
    return descriptor


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies (Linux only)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def preload_for_candidates() -> None:
    """Import what most programs import, once, before the first fork."""
    import bisect
    import copy
    import datetime
    import functools
    import heapq
    import itertools
    import math
    import operator
    import random
    import re
    import string
    import typing

    del bisect, copy, datetime, functools, heapq, itertools, math, operator
    del random, re, string, typing


def preload_for_judges() -> None:
    """Import what tests need, after the candidates' zygote has split off."""
    from mlrl_envs.sandbox import judge

    del judge


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Supervisor of one worker: starts judge and candidate, enforces deadlines, returns outcomes.

The supervisor holds the socket to the owner, the verdict board, and one zygote for judges and one
for candidates. When the owner's end of the socket closes, it exits, and the kernel kills the
processes below it (parent-death signals). It runs neither tests nor programs.
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from mlrl_envs.sandbox.jail import confine
from mlrl_envs.sandbox.judge.board import ENDED, FINISHED, LOADING, TESTING, Board
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker import placement, zygote
from mlrl_envs.sandbox.worker.children import Settings, pack_share, prepare_candidate, prepare_judge
from mlrl_envs.sandbox.worker.deadlines import LEAST_PAUSE, POLL_SECONDS, OwnTime
from mlrl_envs.sandbox.worker.job_header import LIMITS_SIZE, STATELESS, JobLimits
from mlrl_envs.sandbox.worker.process_times import ProcessTimes
from mlrl_envs.sandbox.worker.verdict import RunEnding, verdict_of

__all__ = ["JOB_CAP", "CannotConfineError", "Supervisor"]

JOB_CAP = 256 << 20
OVERLOAD = "overload"
OWN_SLOT, REUSED_SLOT = b"o", b"s"
CLEAN_EXIT: zygote.ExitRecord = (0, 0.0, 0)
STEP_LIMITS = {LOADING: "load_seconds", TESTING: "test_seconds"}


class CannotConfineError(Exception):
    """The host does not reach the required tier, or confinement failed."""


class Supervisor:
    """Runs one program at a time.

    Args:
        owner: Socket to the owner.
        settings: The owner's settings; `base_bytes` is the address space of the bare interpreter.
        tier: How far this host can confine processes.
        visible: Paths that programs may read.
        times: Times of the worker's processes.

    Raises:
        CannotConfineError: If a zygote cannot confine itself.
    """

    def __init__(
        self,
        owner: socket.socket,
        settings: Settings,
        tier: confine.Tier,
        visible: list[str],
        times: ProcessTimes,
    ) -> None:
        self._owner = owner
        self._times = times
        self._settings = settings
        self._scratch = confine.open_scratch(tier)
        self._reused_judge: socket.socket | None = None
        directory = self._scratch.path
        preload_for_candidates()

        def set_up_candidates() -> Callable[[bytes], Any]:
            confine.isolate_processes(tier)
            confine.confine_zygote(tier, visible)
            return prepare_candidate(confine.candidate_seal(tier), directory)

        def set_up_judges() -> Callable[[bytes], Any]:
            confine.confine_zygote(tier, visible)
            return prepare_judge(self._board, directory)

        # The candidates' zygote is forked before the board is mapped and before the judge's
        # modules are imported, so that no candidate process ever held either.
        self._candidates = self._fork_zygote(set_up_candidates, [owner], zygote.bare_fork)
        self._board = Board()
        preload_for_judges()
        self._judges = self._fork_zygote(set_up_judges, [owner, self._candidates])
        for link in (self._candidates, self._judges):
            answer = frames.receive(link.fileno(), JOB_CAP)
            if answer != b"ready":
                raise CannotConfineError(f"a zygote failed: {(answer or b'died').decode()}")

    def serve(self) -> None:
        """Run jobs until the owner closes its socket."""
        while True:
            job = frames.receive(self._owner.fileno(), JOB_CAP)
            if job is None:
                os._exit(0)
            outcome = self.run(job[1:], stateless=job[:1] == STATELESS)
            frames.send(self._owner.fileno(), json.dumps(outcome).encode())

    def run(self, job: bytes, *, stateless: bool) -> dict[str, Any]:
        """Run one program and return the fields of its outcome.

        Args:
            job: Packed `JobLimits`, then the other fields of the program as JSON.
            stateless: Whether the tests change no state that outlives them, so that the reused
                judge may run them.

        Returns:
            The fields; or only the key `overloaded` with a message.
        """
        started = time.monotonic()
        allowed, job = JobLimits.unpack(job), job[LIMITS_SIZE:]
        core = placement.current_core()
        self._board.reset()
        judge_end, candidate_end = socket.socketpair()
        watch, done = os.pipe()  # closing `done` reports that the judge has finished
        output = anonymous_file()
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            passed_on = [candidate_end.fileno(), output, nothing]
            share = pack_share(allowed, self._settings["base_bytes"])
            zygote.start_child(self._candidates, OWN_SLOT, share, passed_on, core)
            candidate_end.close()
            self._start_judge(job, [judge_end.fileno(), done], core, stateless=stateless)
            judge_end.close()
            os.close(done)
            own = OwnTime(self._times.read, started, core)
            expired = self._wait(watch, own, allowed)
            judge_exit = self._end_judge(watch, expired, stateless=stateless)
            candidate_exit = zygote.end_child(self._candidates, OWN_SLOT)
            raw = os.pread(output, allowed.output_bytes, 0)
        except frames.FrameError:
            os._exit(3)  # a zygote was killed from outside: the owner replaces this worker
        finally:
            os.close(watch)
            os.close(output)
            os.close(nothing)
        seconds = time.monotonic() - started
        self._scratch.renew()
        if expired == OVERLOAD:
            return {"overloaded": own.overload_text()}
        ending = RunEnding(expired, judge_exit, candidate_exit, raw, seconds, own.waited(), allowed)
        return verdict_of(self._board, ending)

    def _start_judge(
        self, job: bytes, descriptors: list[int], core: placement.Core, *, stateless: bool
    ) -> None:
        """Send a job to the reused judge, or to a judge process of its own."""
        if not stateless:
            zygote.start_child(self._judges, OWN_SLOT, job, descriptors, core)
            return
        if self._reused_judge is None:
            ours, theirs = socket.socketpair()
            zygote.start_child(self._judges, REUSED_SLOT, b"", [theirs.fileno()])
            theirs.close()
            self._reused_judge = ours
        try:
            frames.send_with_descriptors(self._reused_judge, core + job, descriptors)
        except OSError:
            os._exit(3)  # the reused judge was killed from outside

    def _end_judge(self, watch: int, expired: str, *, stateless: bool) -> zygote.ExitRecord:
        """End the judge, unless it is the reused one and this run ended as it should.

        The reused judge writes `RETIRED` to the pipe when it wants to be replaced.
        """
        if not stateless:
            return zygote.end_child(self._judges, OWN_SLOT)
        finished = self._board.phase in (FINISHED, ENDED)
        if finished and not expired and not os.read(watch, 1):
            return CLEAN_EXIT
        if self._reused_judge is not None:
            self._reused_judge.close()
            self._reused_judge = None
        ending = zygote.end_child(self._judges, REUSED_SLOT)
        return CLEAN_EXIT if finished else ending

    def _wait(self, watch: int, own: OwnTime, allowed: JobLimits) -> str:
        """Wait until the judge has finished; return the limit that expired, "" if none did.

        `OVERLOAD` expires if the run takes `max_stretch` times its limit on the clock, and a
        process that computes would not have reached the limit in this time.
        """
        watched = [watch, self._owner.fileno()]
        pause = min(allowed.wall_seconds, allowed.load_seconds, allowed.test_seconds, POLL_SECONDS)
        while True:
            ready, _, _ = select.select(watched, [], [], pause)
            if watch in ready:
                return ""
            if ready:  # the owner sends nothing during a job, so it has closed its end
                os._exit(0)
            limit, step = STEP_LIMITS.get(self._board.phase), self._board.last_step
            of_run, of_step = own.look(time.monotonic(), step)
            left = {"wall_seconds": allowed.wall_seconds - of_run}
            if limit:
                left[limit] = getattr(allowed, limit) - of_step
            expired = min(left, key=left.__getitem__)
            # A step that has ended meanwhile is not late.
            same_step = expired == "wall_seconds" or step == self._board.last_step
            if left[expired] <= 0 and same_step:
                return expired
            if own.wall() >= allowed.max_stretch * allowed.wall_seconds:
                overload = own.is_overload(allowed.wall_seconds)
                return OVERLOAD if overload else "wall_seconds"
            pause = max(LEAST_PAUSE, min(left[expired], POLL_SECONDS))

    def _fork_zygote(
        self,
        set_up: Callable[[], Callable[[bytes], Any]],
        foreign: Sequence[socket.socket],
        fork: Callable[[], int] = os.fork,
    ) -> socket.socket:
        """Fork a zygote and return the socket to it; its first message is `ready` or an error.

        Args:
            set_up: Runs in the zygote: confines it, and returns its `prepare` function.
            foreign: Sockets that the zygote must not keep.
            fork: How the zygote forks its children.
        """
        ours, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            return ours
        try:
            self._times.close()
            for link in (ours, *foreign):
                link.close()
            serving = zygote.Zygote(theirs, descriptors=3, prepare=set_up(), fork=fork)
            frames.send(theirs.fileno(), b"ready")
            serving.serve()
        except Exception as error:  # noqa: BLE001  the supervisor reports it
            frames.send(theirs.fileno(), f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(1)


def anonymous_file() -> int:
    """Return the descriptor of an empty file without a path."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdout", os.MFD_CLOEXEC)
    import tempfile

    descriptor, path = tempfile.mkstemp()
    os.unlink(path)  # noqa: PTH108  pathlib is not loaded here
    return descriptor


def preload_for_candidates() -> None:
    """Import the modules that most programs use, once, before the first fork."""
    import bisect
    import copy
    import datetime as dt
    import functools
    import heapq
    import itertools
    import math
    import operator
    import random
    import re
    import string
    import typing

    del bisect, copy, dt, functools, heapq, itertools, math, operator
    del random, re, string, typing


def preload_for_judges() -> None:
    """Import the judge's modules, after the candidates' zygote was forked."""
    from mlrl_envs.sandbox.judge import loop

    del loop

"""The supervisor of one worker: it holds the deadlines and composes the outcome.

It owns the owner's socket, the board, and a zygote of each kind. It dies with its owner, and
takes everything below it along.
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from mlrl_envs.sandbox.jail import jail
from mlrl_envs.sandbox.judge.board import ENDED, FINISHED, LOADING, TESTING, Board
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker import allowance, placement, zygote
from mlrl_envs.sandbox.worker.allowance import Allowance
from mlrl_envs.sandbox.worker.deadlines import Patience
from mlrl_envs.sandbox.worker.roles import Settings, prepare_candidate, prepare_judge, share_of
from mlrl_envs.sandbox.worker.verdict import Ended, verdict_of

__all__ = ["JOB_CAP", "PLAIN", "CannotConfineError", "Supervisor"]

JOB_CAP = 256 << 20
GLANCE_SECONDS = 0.1  # how often the supervisor looks at the board: the phase may have changed
PLAIN = b"+"  # before a job whose tests a standing judge may run
OWN_SLOT, STANDING_SLOT = b"o", b"s"
WELL: zygote.Ending = (0, 0.0, 0)


class CannotConfineError(Exception):
    """This host does not reach the tier that was asked for."""


class Supervisor:
    """Runs one program at a time between two zygotes."""

    def __init__(
        self, owner: socket.socket, settings: Settings, tier: jail.Tier, visible: list[str]
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._scratch = jail.scratch(tier)
        self._standing: socket.socket | None = None
        where = self._scratch.path
        preload_for_candidates()

        def be_candidates() -> Callable[[bytes], Any]:
            jail.isolate_processes(tier)
            jail.confine_zygote(tier, visible)
            return prepare_candidate(jail.seal_candidate(tier), where)

        def be_judges() -> Callable[[bytes], Any]:
            jail.confine_zygote(tier, visible)
            return prepare_judge(self._board, where)

        self._candidates = self._spawn(be_candidates, [owner], zygote.bare_fork)
        self._board = Board()
        preload_for_judges()
        self._judges = self._spawn(be_judges, [owner, self._candidates])
        for link in (self._candidates, self._judges):
            said = frames.receive(link.fileno(), JOB_CAP)
            if said != b"ready":
                raise CannotConfineError(f"a zygote failed: {(said or b'died').decode()}")

    def serve(self) -> None:
        """Run jobs until the owner hangs up."""
        while True:
            job = frames.receive(self._owner.fileno(), JOB_CAP)
            if job is None:
                os._exit(0)
            outcome = self.run(job[1:], plain=job[:1] == PLAIN)
            frames.send(self._owner.fileno(), json.dumps(outcome).encode())

    def run(self, job: bytes, *, plain: bool) -> dict[str, Any]:
        """Run one program and return its outcome's fields.

        Args:
            job: An `Allowance`, then source, tests and the rest, as JSON.
            plain: Whether its tests leave nothing behind, so that a standing judge may run them.
        """
        begun = time.monotonic()
        allowed, job = Allowance.unpack(job), job[allowance.SIZE :]
        core = placement.here()
        self._board.reset()
        judge_end, candidate_end = socket.socketpair()
        watch, done = os.pipe()
        output = anonymous_file()
        try:
            handed = [candidate_end.fileno(), output]
            share = share_of(allowed, self._settings["base_bytes"])
            zygote.start(self._candidates, OWN_SLOT, share, handed, core)
            candidate_end.close()
            self._call_judge(job, [judge_end.fileno(), done], core, plain=plain)
            judge_end.close()
            os.close(done)
            late = self._wait(watch, begun, allowed)
            judged = self._dismiss_judge(watch, late, plain=plain)
            ended = zygote.end(self._candidates, OWN_SLOT)
            raw = os.pread(output, allowed.output_bytes, 0)
        except frames.FrameError:
            os._exit(3)  # a zygote was killed from outside: the owner replaces this worker
        finally:
            os.close(watch)
            os.close(output)
        seconds = time.monotonic() - begun
        self._scratch.renew()
        return verdict_of(self._board, Ended(late, judged, ended, raw, seconds, allowed))

    def _call_judge(
        self, job: bytes, descriptors: list[int], core: placement.Core, *, plain: bool
    ) -> None:
        """Hand a job to the standing judge, or to a judge of its own."""
        if not plain:
            zygote.start(self._judges, OWN_SLOT, job, descriptors, core)
            return
        if self._standing is None:
            ours, theirs = socket.socketpair()
            zygote.start(self._judges, STANDING_SLOT, b"", [theirs.fileno()])
            theirs.close()
            self._standing = ours
        try:
            frames.send_with_descriptors(self._standing, core + job, descriptors)
        except OSError:
            os._exit(3)  # the standing judge was killed from outside

    def _dismiss_judge(self, watch: int, late: str, *, plain: bool) -> zygote.Ending:
        """End a judge that served its one program, or a standing one that is no longer fit."""
        if not plain:
            return zygote.end(self._judges, OWN_SLOT)
        finished = self._board.phase in (FINISHED, ENDED)
        if finished and not late and not os.read(watch, 1):
            return WELL
        if self._standing is not None:
            self._standing.close()
            self._standing = None
        ending = zygote.end(self._judges, STANDING_SLOT)
        return WELL if finished else ending

    def _wait(self, watch: int, begun: float, allowed: Allowance) -> str:
        """Wait for the judge's end; return which deadline passed, or "" if none did."""
        last = begun + allowed.wall_seconds
        patience = Patience(lambda: zygote.used(self._candidates, OWN_SLOT))
        while True:
            limit = {LOADING: "load_seconds", TESTING: "test_seconds"}.get(self._board.phase)
            step = self._board.last_step
            seconds = getattr(allowed, limit) if limit else allowed.wall_seconds
            due = step + seconds + patience.granted(step) if limit else last
            now = time.monotonic()
            if now >= last:
                return "wall_seconds"
            if limit and now >= due and step == self._board.last_step:
                if not patience.grant(seconds):
                    return limit
                continue
            watched = [watch, self._owner.fileno()]
            pause = max(0.0, min(due - now, last - now, GLANCE_SECONDS))
            ready, _, _ = select.select(watched, [], [], pause)
            if watch in ready:
                return ""
            if ready:  # the owner never speaks during a job: it is gone
                os._exit(0)

    def _spawn(
        self,
        become: Callable[[], Callable[[bytes], Any]],
        strangers: list[socket.socket],
        fork: Callable[[], int] = os.fork,
    ) -> socket.socket:
        """Fork a zygote that keeps none of the other sockets and says when it is ready."""
        ours, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            return ours
        try:
            for link in (ours, *strangers):
                link.close()
            born = zygote.Zygote(theirs, descriptors=2, prepare=become(), fork=fork)
            frames.send(theirs.fileno(), b"ready")
            born.serve()
        except Exception as error:  # noqa: BLE001  the supervisor reports it
            frames.send(theirs.fileno(), f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(1)


def anonymous_file() -> int:
    """Return a descriptor of an empty file that no path leads to."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdout", os.MFD_CLOEXEC)
    import tempfile

    descriptor, path = tempfile.mkstemp()
    os.unlink(path)  # noqa: PTH108  pathlib is not loaded here
    return descriptor


def preload_for_candidates() -> None:
    """Import what most programs import, once, before the first fork."""
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
    """Import what tests need, after the candidates' zygote has split off."""
    from mlrl_envs.sandbox.judge import loop

    del loop

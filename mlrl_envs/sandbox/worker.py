"""One worker: a supervisor process with a zygote for judges and one for candidates.

The supervisor holds the owner's socket, keeps the deadlines and composes the outcome. It dies
with its owner, and takes everything below it along.
"""

# pathlib is not loaded in workers
# ruff: noqa: PTH108

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from mlrl_envs.sandbox import frames, jail
from mlrl_envs.sandbox.board import LOADING, TESTING, Board
from mlrl_envs.sandbox.roles import (
    Settings,
    prepare_candidate,
    prepare_judge,
    virtual_bytes,
)
from mlrl_envs.sandbox.verdict import Ended, verdict_of
from mlrl_envs.sandbox.zygote import ENDING, Zygote

__all__ = ["main"]

JOB_CAP = 256 << 20
GLANCE_SECONDS = 0.1  # how often the supervisor looks at the board: the phase may have changed
GO = b"go"
SELF_TEST = {
    "source": "def answer():\n    return 42\n",
    "tests": "def check(candidate):\n    assert candidate() == 42\n",
    "helpers": "",
    "style": "check",
    "entry_points": ["answer"],
    "assurance": "split",
    "dunders": [],
}


class CannotConfineError(Exception):
    """This host does not reach the tier that was asked for."""


def main(descriptor: int) -> None:
    """Serve jobs from the owner's socket, a descriptor, until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner's Ctrl-C is the owner's business
    os.environ.clear()
    owner = socket.socket(fileno=descriptor)
    settings = json.loads(frames.receive(descriptor, JOB_CAP) or b"{}")
    try:
        supervisor = _set_up(owner, settings)
    except Exception as error:  # noqa: BLE001  whatever it is, the owner must hear of it
        frames.send(
            owner.fileno(), json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()
        )
        os._exit(1)
    supervisor.serve()


def _set_up(owner: socket.socket, settings: Settings) -> "Supervisor":
    tier, layers = settings.get("tier"), settings.get("layers")
    if tier is None:
        tier, layers = jail.inspect(settings["maximum_tier"])
    greeting = {"ready": True, "tier": tier, "layers": layers}
    if tier == "D" and not settings["allow_insecure"]:
        raise CannotConfineError("this host can confine nothing (tier D); allow_insecure=True")
    if tier > settings["minimum_tier"] and tier != "D":
        raise CannotConfineError(f"this host reaches tier {tier}, not {settings['minimum_tier']}")
    settings["base_bytes"] = virtual_bytes()
    visible = jail.visible(tier)
    jail.enter_world(tier, owner.close)
    supervisor = Supervisor(owner, settings, tier, visible)
    if tier == "A":
        jail.hide_package()
    outcome = supervisor.run(json.dumps(SELF_TEST).encode())
    if outcome.get("status") != "passed":
        raise CannotConfineError(f"the worker fails its own test: {outcome}")
    frames.send(owner.fileno(), json.dumps(greeting).encode())
    return supervisor


class Supervisor:
    """Runs one program at a time between two zygotes."""

    def __init__(
        self, owner: socket.socket, settings: Settings, tier: jail.Tier, visible: list[str]
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._scratch = jail.scratch(tier)
        where = self._scratch.path
        preload_for_candidates()

        def be_candidates() -> Callable[[bytes], Any]:
            jail.isolate_processes(tier)
            jail.confine_zygote(tier, visible)
            return prepare_candidate(settings, jail.seal_candidate(tier), where)

        def be_judges() -> Callable[[bytes], Any]:
            jail.confine_zygote(tier, visible)
            return prepare_judge(self._board, where)

        self._candidates = self._spawn(be_candidates, [owner])
        self._board = Board()
        preload_for_judges()
        self._judges = self._spawn(be_judges, [owner, self._candidates])
        for zygote in (self._candidates, self._judges):
            said = frames.receive(zygote.fileno(), JOB_CAP)
            if said != b"ready":
                raise CannotConfineError(f"a zygote failed: {(said or b'died').decode()}")

    def serve(self) -> None:
        """Run jobs until the owner hangs up."""
        while True:
            job = frames.receive(self._owner.fileno(), JOB_CAP)
            if job is None:
                os._exit(0)
            frames.send(self._owner.fileno(), json.dumps(self.run(job)).encode())

    def run(self, job: bytes) -> dict[str, Any]:
        """Run one program and return its outcome's fields."""
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
            raw = os.pread(output, int(self._settings["output_kib"] * 1024), 0)
        finally:
            os.close(watch)
            os.close(output)
        ended = Ended(late, *endings, raw, time.monotonic() - begun, self._settings)
        self._scratch.renew()
        return verdict_of(self._board, ended)

    def _spawn(
        self, become: Callable[[], Callable[[bytes], Any]], strangers: list[socket.socket]
    ) -> socket.socket:
        """Fork a zygote that keeps none of the other sockets and says when it is ready."""
        ours, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            return ours
        try:
            for link in (ours, *strangers):
                link.close()
            zygote = Zygote(
                theirs, descriptors=2, prepare=become(), die_with_parent=jail.die_with_parent
            )
            frames.send(theirs.fileno(), b"ready")
            zygote.serve()
        except Exception as error:  # noqa: BLE001  the supervisor reports it
            frames.send(theirs.fileno(), f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(1)

    def _wait(self, watch: int, begun: float) -> str:
        """Wait for the judge's end; return which deadline passed, or "" if none did."""
        last = begun + self._settings["wall_seconds"]
        while True:
            allowed = {LOADING: "load_seconds", TESTING: "test_seconds"}.get(self._board.phase)
            due = self._board.last_step + self._settings[allowed] if allowed else last
            left = min(due, last) - time.monotonic()
            if left <= 0:
                return allowed if allowed and due < last else "wall_seconds"
            watched = [watch, self._owner.fileno()]
            ready, _, _ = select.select(watched, [], [], min(left, GLANCE_SECONDS))
            if watch in ready:
                return ""
            if ready:  # the owner never speaks during a job: it is gone
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
    os.unlink(path)
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
    from mlrl_envs.sandbox import judge, judge_unittest

    del judge, judge_unittest

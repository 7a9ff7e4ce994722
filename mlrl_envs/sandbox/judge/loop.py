"""Where judges sit: compiled tests, and the loop of a judge that stands for many programs."""

import json
import os
import resource
import socket
from collections import OrderedDict

from mlrl_envs.sandbox.judge import judge
from mlrl_envs.sandbox.judge.board import Board
from mlrl_envs.sandbox.judge.plan import Plan, make_plan
from mlrl_envs.sandbox.judge.trial import Job
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker import placement

__all__ = ["RETIRED", "Bench"]

PLANS = 256
JOBS = 5000
GROWTH_KIB = 64 << 10
RETIRED = b"r"


class Bench:
    """Runs jobs in this process, with the plans of recent tests at hand."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._plans: OrderedDict[tuple[str, str, str, tuple[str, ...]], Plan] = OrderedDict()

    def make_ready(self, payload: bytes) -> tuple[Job, Plan]:
        """Read a job, compile its tests, and write the plan on a fresh board."""
        job: Job = json.loads(payload)
        plan = self._plan_of(job)
        self._board.reset()
        if plan.expected is not None:
            self._board.note("plan", [plan.names[place] for place in plan.expected])
        self._board.note("names", plan.names)
        return job, plan

    def run(self, payload: bytes, link: int) -> None:
        """Judge one program."""
        job, plan = self.make_ready(payload)
        judge.run_judge(job, plan, link, self._board)

    def serve(self, seat: int) -> None:
        """Judge programs as they come, until it is time for a fresh process.

        With each job come two descriptors: the candidate's link, and a pipe whose closing says
        that the job is done; the last one hears `RETIRED` first.
        """
        jobs = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, seat)
        limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + GROWTH_KIB
        place = placement.Place()
        for count in range(1, JOBS + 1):
            message = frames.receive_with_descriptors(jobs, 2)
            if message is None:
                return
            payload, (link, done) = message
            place.follow(payload[: len(placement.ANYWHERE)])
            self.run(payload[len(placement.ANYWHERE) :], link)
            os.close(link)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > limit
            if grown or count == JOBS:
                os.write(done, RETIRED)
                return
            os.close(done)

    def _plan_of(self, job: Job) -> Plan:
        key = (job["tests"], job["helpers"], job["style"], tuple(job["entry_points"]))
        if key not in self._plans:
            self._plans[key] = make_plan(*key)
            if len(self._plans) > PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return self._plans[key]

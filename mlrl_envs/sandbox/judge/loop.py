"""Main loop of a judge process, with a cache of compiled tests."""

import json
import os
import resource
import socket
from collections import OrderedDict

from mlrl_envs.sandbox.judge.board import Board
from mlrl_envs.sandbox.judge.plan import Plan, make_plan
from mlrl_envs.sandbox.judge.run import run_judge
from mlrl_envs.sandbox.judge.trial import JobFields
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker import placement

__all__ = ["RETIRED", "JudgeLoop"]

MAX_PLANS = 256  # compiled tests that are cached
MAX_JOBS = 5000  # programs before a reused judge is replaced
MAX_GROWTH_KIB = 64 << 10  # peak resident size above that at the start, before it is replaced
RETIRED = b"r"  # written to the pipe of a job if the judge exits after it


class JudgeLoop:
    """Runs jobs in this process and caches the plans of recent tests.

    Args:
        board: Where the verdicts are written.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._plans: OrderedDict[tuple[str, str, str, tuple[str, ...]], Plan] = OrderedDict()

    def make_ready(self, payload: bytes) -> tuple[JobFields, Plan]:
        """Decode a job, compile its tests, clear the board and write the plan to it."""
        job: JobFields = json.loads(payload)
        plan = self._plan_of(job)
        self._board.reset()
        if plan.expected is not None:
            self._board.note("plan", [plan.names[index] for index in plan.expected])
        self._board.note("names", plan.names)
        return job, plan

    def run(self, payload: bytes, link: int) -> None:
        """Judge one program.

        Args:
            payload: The job as JSON.
            link: Descriptor of the socket to the candidate.
        """
        job, plan = self.make_ready(payload)
        run_judge(job, plan, link, self._board)

    def serve(self, descriptor: int) -> None:
        """Judge programs one after the other, until the process should be replaced.

        Each message holds a core, a job, and two descriptors: the socket to the candidate, and a
        pipe that the judge closes when the job is done. If the judge then exits, it first writes
        `RETIRED` to the pipe.

        Args:
            descriptor: File descriptor of the socket on which the jobs arrive.
        """
        jobs = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
        limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + MAX_GROWTH_KIB
        affinity = placement.Affinity()
        for count in range(1, MAX_JOBS + 1):
            message = frames.receive_with_descriptors(jobs, 2)
            if message is None:
                return
            payload, (link, done) = message
            affinity.move_to(payload[: len(placement.ANY_CORE)])
            self.run(payload[len(placement.ANY_CORE) :], link)
            os.close(link)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > limit
            if grown or count == MAX_JOBS:
                os.write(done, RETIRED)
                return
            os.close(done)

    def _plan_of(self, job: JobFields) -> Plan:
        key = (job["tests"], job["helpers"], job["style"], tuple(job["entry_points"]))
        if key not in self._plans:
            self._plans[key] = make_plan(*key)
            if len(self._plans) > MAX_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return self._plans[key]

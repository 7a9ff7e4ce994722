"""Handle of the owner process on one worker: start it, send jobs to it, detect its death."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path
from typing import Any

from mlrl_envs.errors import InfraError, InvalidArgumentError, OverloadedError
from mlrl_envs.sandbox.judge.stateless_tests import are_stateless
from mlrl_envs.sandbox.program import Limits, Outcome, Program, TestRecord
from mlrl_envs.sandbox.wire import frames
from mlrl_envs.sandbox.worker.job_header import STATEFUL, STATELESS, JobLimits

__all__ = ["WorkerHandle", "WorkerLostError", "lost_worker"]

REPLY_CAP = 256 << 20
START_SECONDS = 120.0
GRACE_SECONDS = 15.0
# Python code of a new worker. It registers empty packages for `mlrl_envs` and `mlrl_envs.sandbox`,
# because their `__init__` modules would import gymnasium and the public side of the sandbox.
BOOTSTRAP = """
import sys, types
sys.path[:] = [p for p in sys.path if p]
for name, path in (("mlrl_envs", sys.argv[1]), ("mlrl_envs.sandbox", sys.argv[1] + "/sandbox")):
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module
from mlrl_envs.sandbox.worker.main import main
main(int(sys.argv[2]))
"""
KEPT_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")


class WorkerLostError(Exception):
    """The worker died during a job, most likely because something outside killed it."""


def lost_worker(cause: WorkerLostError) -> InfraError:
    """Return the error for a program whose worker was lost in every attempt."""
    return InfraError(
        f"the worker of a program was lost repeatedly: {cause}; check whether the machine is out "
        "of memory, or whether something ends the worker's processes"
    )


class WorkerHandle:
    """A running worker process.

    Args:
        settings: Limits, required tier and host findings, sent to the worker as JSON.

    Attributes:
        settings: The settings.
        process: The worker's process.
        link: Socket to the worker.
        greeting: The worker's first message; holds the keys `tier` and `layers`.

    Raises:
        InfraError: If the worker cannot be started or cannot confine itself as required.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        ours, theirs = socket.socketpair()
        package = str(Path(__file__).parents[2])
        command = [sys.executable, "-s", "-S", "-c", BOOTSTRAP, package, str(theirs.fileno())]
        environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        try:
            self.process = subprocess.Popen(  # noqa: S603  our own interpreter and module
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("MLRL_SANDBOX_DEBUG") else subprocess.DEVNULL,
                env={"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "LD_BIND_NOW": "1", **environment},
                cwd="/",
            )
        except OSError as error:
            ours.close()
            raise InfraError(f"a sandbox worker cannot be started: {error}") from error
        finally:
            theirs.close()
        self.link = ours
        self.greeting = self._greet(settings)

    def run(self, program: Program, limits: Limits) -> Outcome:
        """Run one program under the given limits and return its outcome.

        Raises:
            WorkerLostError: If the worker dies, cannot fork, or does not answer in time.
            InvalidArgumentError: If the program's helpers raise an exception.
            OverloadedError: If the machine was too busy to run the program.
        """
        job = {
            "source": program.source,
            "tests": program.tests,
            "helpers": program.helpers,
            "style": program.style,
            "entry_points": program.entry_points,
            "assurance": program.assurance,
            "dunders": program.dunders,
        }
        try:
            kind = STATELESS if are_stateless(program.tests, program.helpers) else STATEFUL
            allowed = JobLimits(*astuple(limits)).pack()
            frames.send(self.link.fileno(), kind + allowed + json.dumps(job).encode())
            fields = self._receive(limits.wall_seconds * limits.max_stretch + GRACE_SECONDS)
        except (OSError, frames.FrameError) as error:
            raise WorkerLostError(str(error)) from error
        if "fault" in fields:
            raise InvalidArgumentError(str(fields["fault"]))
        if "overloaded" in fields:
            raise OverloadedError(str(fields["overloaded"]))
        if "infra" in fields:
            raise WorkerLostError(str(fields["infra"]))
        fields["tests"] = tuple(TestRecord(*record) for record in fields["tests"])
        return Outcome(**fields, assurance=program.assurance)

    def close(self) -> None:
        """Close the connection and wait until the worker and its descendants have ended."""
        self.hang_up()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.link.close()

    def hang_up(self) -> None:
        """Shut the socket down: the worker ends, and a thread blocked on it wakes up."""
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_RDWR)

    def abandon(self) -> None:
        """After a fork, release a worker that belongs to the parent process without ending it."""
        self.link.close()
        self.process.returncode = 0

    def _greet(self, settings: dict[str, Any]) -> dict[str, Any]:
        try:
            frames.send(self.link.fileno(), json.dumps(settings).encode())
            greeting = self._receive(START_SECONDS)
        except (OSError, frames.FrameError, WorkerLostError) as error:
            with contextlib.suppress(OSError):
                self.process.kill()
            self.close()
            raise InfraError(f"a sandbox worker died while starting: {error}") from error
        if "ready" not in greeting:
            self.close()
            raise InfraError(f"a sandbox worker cannot be confined: {greeting.get('error')}")
        return greeting

    def _receive(self, seconds: float) -> dict[str, Any]:
        waiting = select.poll()  # unlike `select`, it accepts descriptors above 1,023
        waiting.register(self.link, select.POLLIN)
        if not waiting.poll(seconds * 1000):
            raise WorkerLostError(f"no answer within {seconds:g} s")
        frame = frames.receive(self.link.fileno(), REPLY_CAP)
        if frame is None:
            raise WorkerLostError("it closed the connection")
        fields: dict[str, Any] = json.loads(frame)
        return fields
